//! The environment of a scenario: the differences between the in-memory environment and a real control plane, and nothing else.

use crate::kinds::ClusterRole;
use crate::steps::Steps;
use five_spot_standins::ProviderBehaviour;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The time limits of an environment.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The time to wait for something before it counts as never happening.
    pub wait_limit: Duration,
    /// The time without a write after which an environment counts as settled.
    pub settled_after: Duration,
    /// The time it then has to stay idle.
    pub quiet: Duration,
    /// True if minutes cost nothing here.
    pub is_virtual: bool,
    /// The factor on the time limits of scenarios, which are in virtual time.
    pub time_factor: u32,
}

/// The state of an API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerState {
    /// It answers.
    #[default]
    Up,
    /// It accepts connections, keeps existing ones, and does not answer.
    Silent,
    /// It refuses connections.
    Down,
}

/// Something around the controller that does not work, in this scenario alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impairment {
    /// The workload cluster allows the controller nothing.
    WorkloadForbidden,
    /// Admission refuses the controller's patches of Machines.
    MachinePatches,
    /// Admission does not respond to the controller's patches of Machines.
    MachinePatchesHang,
    /// The status of the object is refused as too large.
    StatusTooLarge,
    /// The status of the object is refused as invalid.
    StatusInvalid,
    /// The status of the object may not be written.
    StatusForbidden,
    /// Writes of the status of the object are not answered.
    StatusHangs,
    /// Events are refused.
    Events,
    /// Writes of events are not answered.
    EventsHang,
    /// The controller may not write the Leases that claim physical machines.
    Leases,
    /// Cluster API does not run. Where that affects the whole environment, a scenario needs its own environment.
    ClusterApi,
    /// The management cluster takes a second for each request.
    SlowManagement,
}

/// Something that happens to a controller while others could take over from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderFault {
    /// It is killed before a write is sent, and started again.
    Killed,
    /// It is killed after a write was carried out and before the response arrives, and started again.
    KilledUnaware,
    /// It is stopped for longer than its Lease with a write that is sent when it continues.
    Stopped,
    /// Its connections deliver nothing for longer than its Lease, and then the write that was in flight.
    Silent,
    /// Its connections fail for longer than its Lease.
    CutOff,
    /// The same, and the write in flight was carried out.
    CutOffUnaware,
}

impl LeaderFault {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Killed, Self::KilledUnaware, Self::Stopped, Self::Silent, Self::CutOff, Self::CutOffUnaware];
}

impl fmt::Display for LeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::KilledUnaware => "killed-unaware",
            Self::Stopped => "stopped",
            Self::Silent => "silent",
            Self::CutOff => "cut-off",
            Self::CutOffUnaware => "cut-off-unaware",
        })
    }
}

/// A server that a kubeconfig can name by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongServer {
    /// An API server of another cluster, which is healthy and has none of our Nodes.
    OtherCluster,
    /// A web server that answers every request with `404 page not found`.
    NoApi,
}

/// A write that the controller made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When.
    pub time: Timestamp,
    /// `create`, `patch`, `delete`, ...
    pub verb: String,
    /// The plural of the kind, with the subresource if there is one: `pods/eviction`.
    pub resource: String,
    /// The name; empty where the request names none.
    pub name: String,
    /// The status of the answer; absent if there was none.
    pub code: Option<u16>,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
        write!(f, "{} {} {} {} -> {code}", self.time, self.verb, self.resource, self.name)
    }
}

/// A management cluster and a workload cluster, which may be the same, with all their components, and a
/// controller.
pub trait Environment: Send + Sync {
    /// A client of the harness in the management cluster.
    fn management(&self) -> Client;
    /// A client of the harness in the workload cluster.
    fn workload(&self) -> Client;
    /// The namespace that belongs to this scenario alone, in both clusters.
    fn namespace(&self) -> &str;
    /// The time.
    fn now(&self) -> Timestamp;
    /// The time limits.
    fn pace(&self) -> Pace;
    /// The deliberate steps of the scenario.
    fn steps(&self) -> &Steps;
    /// The version of Cluster API that the controller finds here; the kinds of the provider have it too.
    fn cluster_api(&self) -> &'static str {
        "v1beta2"
    }
    /// Further fields that a spec needs here, as a merge patch.
    fn spec(&self) -> Value;
    /// An address that no other machine has.
    fn address(&self) -> String;
    /// Creates a Cluster with a control plane, and the kubeconfig of the workload cluster.
    fn make_cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;
    /// Sets the behaviour of the provider.
    fn provider(&self, behaviour: ProviderBehaviour);
    /// Stops or resumes the reports of the kubelet of a Node.
    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>>;
    /// Disconnects a Node, or reconnects it: the state of its pods is unknown. Where this affects every Node, a
    /// scenario needs its own environment.
    fn cut_off<'a>(&'a self, node: &'a str, is_cut_off: bool) -> BoxFuture<'a, anyhow::Result<()>>;
    /// Grants the controller one more kind of a provider.
    fn grant<'a>(&'a self, group: &'a str, plural: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;
    /// The Secret with the kubeconfig that the controller uses; nothing where Nodes are in the management cluster.
    fn kubeconfig_secret(&self) -> Option<String>;
    /// A kubeconfig with new credentials. The previous ones are no longer valid.
    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>>;
    /// A kubeconfig for the workload cluster through another connection, which can hang.
    fn kubeconfig_by_another_line(&self) -> BoxFuture<'_, anyhow::Result<String>>;
    /// Sets the state of an API server, at least for the controller; where it affects all clients, a scenario
    /// needs its own environment.
    fn set_api_server(&self, side: ClusterRole, state: ServerState) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Sets the state of that connection: open, hung (connections stay, new ones are accepted, nothing is answered),
    /// or closed.
    fn set_other_line(&self, state: ServerState);
    /// A kubeconfig for a server other than that of the workload cluster.
    fn kubeconfig_to(&self, server: WrongServer) -> BoxFuture<'_, anyhow::Result<String>>;
    /// Starts or ends an impairment.
    fn set_impaired(&self, what: Impairment, is_impaired: bool) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Allows or forbids the controller to change Nodes.
    fn allow_node_writes(&self, is_allowed: bool) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Starts the controller.
    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Stops the controller, and waits until it has ended.
    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Kills the controller.
    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Disturbs the leader, or the first of several instances that share the objects. Only where several controllers
    /// run.
    fn disturb_controller(&self, _: LeaderFault) -> BoxFuture<'_, anyhow::Result<()>> {
        async { anyhow::bail!("there is only one controller here") }.boxed()
    }
    /// Every write of every controller so far, in order.
    fn writes(&self) -> anyhow::Result<Vec<Write>>;
}
