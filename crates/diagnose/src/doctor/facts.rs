//! The facts that the doctor judges: objects as they were read, and what the controller and its agents say of themselves.
//! Everything that could not be read is absent, and named in [`DoctorFacts::not_read`].

use super::logs::LogLine;
use super::machine::MachineFacts;
use super::metrics::Scrapes;
use crate::controller_config::ControllerConfig;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that was read.
#[derive(Clone, Debug)]
pub struct DoctorFacts {
    /// The time, by the clock of the API server.
    pub now: Timestamp,
    /// The clock of the API server, minus that of the reader.
    pub server_clock_ahead: SignedDuration,
    /// The CRD of `ScheduledMachine`.
    pub definition: CrdState,
    /// Cluster API.
    pub cluster_api: ClusterApi,
    /// The permissions that the controller's service account lacks; absent if that is unknown.
    pub missing_permissions: Option<Vec<String>>,
    /// The controller.
    pub controller: ControllerFacts,
    /// The `ScheduledMachines` that are checked.
    pub machines: Vec<MachineFacts>,
    /// True if one object was asked for by name.
    pub is_named: bool,
    /// The names of all `ScheduledMachines` in the namespaces that are checked, as `namespace/name`; absent if unknown.
    pub known: Option<Vec<String>>,
    /// True if someone acts on the `ScheduledMachines` of other namespaces.
    pub works_elsewhere: bool,
    /// The machines among them on which nobody has acted although a boundary of their schedule has passed.
    pub neglected: Vec<String>,
    /// The Machines of Cluster API that carry our label.
    pub capi_machines: Vec<Value>,
    /// The Warning events in these namespaces.
    pub events: Vec<Value>,
    /// The workload clusters.
    pub workloads: BTreeMap<WorkloadKey, WorkloadFacts>,
    /// The resources that may not or could not be read.
    pub not_read: Vec<String>,
}

/// The CRD of `ScheduledMachine`, compared with the one of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdState {
    /// It fits.
    Fits,
    /// It lacks fields of the spec.
    LacksFields(String),
    /// It lacks fields of the status, or serves another version: the controller does nothing.
    TooOld(String),
    /// It is not there.
    Absent(String),
    /// It could not be read.
    Unknown,
}

/// The state of Cluster API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterApi {
    /// Its Machines are served.
    Served,
    /// They are not.
    Missing,
    /// It could not be read.
    Unknown,
}

/// The controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its pods; absent if they may not be read.
    pub pods: Option<Vec<ControllerPod>>,
    /// The Leases in its namespace; absent if they may not be read.
    pub leases: Option<Vec<Lease>>,
    /// The Deployments and `StatefulSets` with its label; absent if they may not be read.
    pub owners: Option<Vec<Value>>,
    /// The pods that one of these owners would create; absent if there are pods.
    pub template: Option<ControllerTemplate>,
}

/// The pods of the controller as their template describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerTemplate {
    /// Their service account.
    pub account: String,
    /// Their configuration.
    pub config: ControllerConfig,
}

/// A pod of the controller.
#[derive(Clone, Debug, Default)]
pub struct ControllerPod {
    /// The pod.
    pub pod: Value,
    /// Its configuration.
    pub config: ControllerConfig,
    /// The answer of `/ready`.
    pub readiness: Option<PodReadiness>,
    /// Two pages of `/metrics`.
    pub scrapes: Option<Scrapes>,
    /// The end of its log.
    pub log: Vec<LogLine>,
}

/// The answer of `/ready`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodReadiness {
    /// True if it is ready.
    pub is_ready: bool,
    /// The lines of the answer.
    pub lines: Vec<String>,
}

/// A Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its name.
    pub name: String,
    /// Its holder; empty if it was released.
    pub holder: String,
    /// The last renewal.
    pub renewed: Option<Timestamp>,
    /// The time for which it is valid after that.
    pub duration: SignedDuration,
    /// The number of instances that its holder was started with.
    pub instances: Option<u32>,
    /// The time at which its holder got it.
    pub acquired: Option<Timestamp>,
}

/// The name of a workload cluster: a namespace, and the Secret with the kubeconfig; no Secret for the management cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadKey {
    /// The namespace.
    pub namespace: String,
    /// The Secret.
    pub secret: Option<String>,
}

/// A workload cluster.
#[derive(Clone, Debug, Default)]
pub struct WorkloadFacts {
    /// Its Nodes that belong to our machines; absent if they may not be read.
    pub nodes: Option<BTreeMap<String, Value>>,
    /// The agents' pods; absent if they may not be read.
    pub agents: Option<Vec<AgentPod>>,
    /// The `ConfigMaps` in the agents' namespace; absent if they may not be read.
    pub agent_configs: Option<BTreeMap<String, Value>>,
    /// The `DaemonSets` of the agent; absent if they may not be read.
    pub daemon_sets: Option<Vec<Value>>,
    /// The namespace of the agents; null if it does not exist, absent if it may not be read.
    pub agent_namespace: Option<Value>,
    /// The Warning events in the namespace of the agents.
    pub agent_events: Vec<Value>,
    /// The disruption budgets.
    pub budgets: Vec<Value>,
    /// The pods of the nodes that are being drained, by node.
    pub pods: BTreeMap<String, Vec<Value>>,
}

/// The pod of a reclaim agent.
#[derive(Clone, Debug, Default)]
pub struct AgentPod {
    /// The pod.
    pub pod: Value,
    /// The end of its log, if it was read.
    pub log: Vec<LogLine>,
}

impl DoctorFacts {
    /// Facts about nothing, at a time.
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            server_clock_ahead: SignedDuration::ZERO,
            definition: CrdState::Fits,
            cluster_api: ClusterApi::Served,
            missing_permissions: None,
            controller: ControllerFacts {
                namespace: five_spot_api::names::SYSTEM_NAMESPACE.to_owned(),
                ..ControllerFacts::default()
            },
            machines: Vec::new(),
            is_named: false,
            known: None,
            works_elsewhere: false,
            neglected: Vec::new(),
            capi_machines: Vec::new(),
            events: Vec::new(),
            workloads: BTreeMap::new(),
            not_read: Vec::new(),
        }
    }

    /// The pods of the controller that were read.
    pub(super) fn pods(&self) -> &[ControllerPod] {
        self.controller.pods.as_deref().unwrap_or_default()
    }

    /// The configurations of the controller's pods or, if there are none, of their template.
    pub(super) fn configurations(&self) -> impl Iterator<Item = &ControllerConfig> {
        let template = self.controller.template.as_ref().map(|template| &template.config);
        self.pods().iter().map(|pod| &pod.config).chain(template)
    }

    /// The time since an instant; zero for one that is still to come.
    pub(super) fn since(&self, at: Timestamp) -> SignedDuration {
        self.now.duration_since(at).max(SignedDuration::ZERO)
    }
}

impl Lease {
    /// Reads a Lease.
    pub fn of(lease: &Value) -> Self {
        use super::json::{label, name, number, text, time};
        Self {
            name: name(lease).to_owned(),
            holder: text(lease, "/spec/holderIdentity").to_owned(),
            renewed: time(lease, "/spec/renewTime"),
            duration: SignedDuration::from_secs(number(lease, "/spec/leaseDurationSeconds").unwrap_or(15)),
            instances: label(lease, "5spot.finos.org/instance-count").and_then(|count| count.parse().ok()),
            acquired: time(lease, "/spec/acquireTime"),
        }
    }

    /// True if it is held at an instant. A clock that is a little wrong ends no Lease.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        let valid_for = self.duration * 2;
        !self.holder.is_empty()
            && self.renewed.is_some_and(|renewed| now.duration_since(renewed) <= valid_for)
    }
}
