//! Impairments in force, as the controller sees them.

use super::transport::refusal;
use crate::environment::Impairment;
use crate::kinds::{MACHINE, SCHEDULED_MACHINE};
use five_spot_apiserver::ResponseBody;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time of each request to a slow management cluster.
const SLOW: Duration = Duration::from_secs(1);

/// The impairments that are in force.
#[derive(Debug, Default)]
pub(super) struct Impairments {
    active: Mutex<BTreeSet<Impairment>>,
}

impl Impairments {
    /// Starts or ends an impairment.
    pub(super) fn set(&self, what: Impairment, is_impaired: bool) {
        let mut active = self.lock();
        if is_impaired {
            active.insert(what);
        } else {
            active.remove(&what);
        }
    }

    /// Returns true if the workload cluster allows nothing.
    pub(super) fn forbid_workload(&self) -> bool {
        self.lock().contains(&Impairment::WorkloadForbidden)
    }

    /// The delay of a request to the management cluster.
    pub(super) fn delay(&self) -> Duration {
        if self.lock().contains(&Impairment::SlowManagement) { SLOW } else { Duration::ZERO }
    }

    /// The refusal that the management cluster has for a request.
    pub(super) fn refuse(&self, request: &Request<Body>) -> Option<Response<ResponseBody>> {
        self.lock().iter().find_map(|active| refused_under(*active, request))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Impairment>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused_under(active: Impairment, request: &Request<Body>) -> Option<Response<ResponseBody>> {
    let path = request.uri().path();
    let is_write = *request.method() != Method::GET;
    let has = |plural: &str| path.contains(&format!("/{plural}/"));
    let is_status = is_write && has(SCHEDULED_MACHINE.plural) && path.ends_with("/status");
    let (is_refused, code, reason) = match active {
        Impairment::StatusTooLarge => (is_status, StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
        Impairment::StatusInvalid => (is_status, StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        Impairment::StatusForbidden => (is_status, StatusCode::FORBIDDEN, "Forbidden"),
        Impairment::Events => {
            (is_write && (path.ends_with("/events") || has("events")), StatusCode::FORBIDDEN, "Forbidden")
        }
        Impairment::Leases => {
            let is_lease = path.ends_with("/leases") || has("leases");
            (is_write && is_lease, StatusCode::FORBIDDEN, "Forbidden")
        }
        Impairment::MachinePatches => {
            let is_patch = *request.method() == Method::PATCH && has(MACHINE.plural);
            (is_patch, StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
        }
        Impairment::WorkloadForbidden | Impairment::ClusterApi | Impairment::SlowManagement => return None,
    };
    is_refused.then(|| refusal(code, reason))
}
