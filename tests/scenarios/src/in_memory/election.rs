//! The election among several controllers, as the API server sees it: who holds the Lease, and who writes.

use super::link::LEASE_NAME;
use super::transport::refusal_with;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_apiserver::{ApiServer, ResponseBody};
use five_spot_controller::leader::LeaseTiming;
use http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The durations of the Leases: short, so that a scenario ends nearly as soon as without a fault.
pub(super) const TIMING: LeaseTiming = LeaseTiming {
    duration: Duration::from_secs(3),
    renew_deadline: Duration::from_secs(2),
    retry_period: Duration::from_secs(1),
};

/// The plurals of the kinds that the admission policy of `deploy/ha` covers. The Leases of elections are not fenced,
/// and their writes are not recorded here.
const FENCED: [&str; 5] =
    ["/machines", "/scheduledmachines", "/k0sworkerconfigs", "/remotemachines", "/leases"];

/// An election, or several instances without one.
pub(super) struct Election {
    api: ApiServer,
    has_leader: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Writes of processes that did not hold the Lease.
    late: Vec<String>,
    /// The pods that have written to each object.
    writers: BTreeMap<String, BTreeSet<String>>,
}

impl Election {
    /// An election, and a Lease without a holder. Without a leader the instances share the objects.
    pub(super) fn new(api: ApiServer, has_leader: bool) -> Self {
        if has_leader {
            let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0});
            api.create(&leases(), &json!({"metadata": {"name": LEASE_NAME}, "spec": spec}));
        }
        Self { api, has_leader, seen: Mutex::default() }
    }

    /// The holder of the Lease, and how often it has changed.
    pub(super) async fn holder(&self) -> anyhow::Result<(String, u64)> {
        let request = Request::get(format!("{}/{LEASE_NAME}", leases())).body(Vec::new())?;
        let lease: Value = self.api.client(SYSTEM_NAMESPACE).request(request).await?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        Ok((holder, lease["spec"]["leaseTransitions"].as_u64().unwrap_or_default()))
    }

    /// Records a write that has arrived, and refuses it as the admission policy would. A write that was sent before its
    /// process was stopped may arrive late.
    pub(super) async fn admit(
        &self,
        identity: &str,
        (method, path): (&Method, &str),
        may_be_late: bool,
    ) -> Option<Response<ResponseBody>> {
        if !self.has_leader {
            if let Some((_, rest)) = path.split_once("/scheduledmachines/") {
                let object = rest.split('/').next().unwrap_or_default().to_owned();
                self.lock().writers.entry(object).or_default().insert(pod(identity).to_owned());
            }
            return None;
        }
        let holder = self.holder().await.map(|(holder, _)| holder).unwrap_or_default();
        if holder == identity {
            return None;
        }
        if !may_be_late {
            self.lock().late.push(format!("{identity}: {method} {path}, held by {holder}"));
        }
        let is_fenced = FENCED.iter().any(|plural| path.contains(plural));
        (is_fenced && pod(&holder) != pod(identity)).then(|| {
            let text = format!(
                "ValidatingAdmissionPolicy '5spot-fence' with binding '5spot-fence' denied request: pod {} does not hold \
                 the Lease (holder: {holder})",
                pod(identity)
            );
            refusal_with(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &text)
        })
    }

    /// Violations: writes of a process that did not hold the Lease, and objects that two instances have worked on.
    pub(super) fn violations(&self) -> Vec<String> {
        let seen = self.lock();
        let shared = seen.writers.iter().filter(|(_, pods)| pods.len() > 1);
        let shared = shared.map(|(object, pods)| format!("{object} was written by {pods:?}"));
        seen.late.iter().cloned().chain(shared).collect()
    }

    /// The number of instances that have written to an object.
    pub(super) fn instances_at_work(&self) -> usize {
        self.lock().writers.values().flatten().collect::<BTreeSet<_>>().len()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn leases() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases")
}

/// The pod of an identity.
pub(super) fn pod(identity: &str) -> &str {
    identity.split('_').next().unwrap_or_default()
}
