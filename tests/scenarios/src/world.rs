//! Where a scenario is played: what differs between the sandbox and a real control plane, and nothing else.

use crate::kinds::Side;
use crate::steps::Steps;
use five_spot_standins::Behaviour;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// How long things may take in a world.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long to wait for something before it counts as never happening.
    pub patience: Duration,
    /// How long no write must come for a world to count as settled.
    pub settled_after: Duration,
    /// How long it then has to stay silent.
    pub quiet: Duration,
    /// Whether minutes cost nothing here.
    pub is_virtual: bool,
    /// How many times as long as in virtual time the end of a scenario may take.
    pub time_factor: u32,
}

/// How an API server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiServer {
    /// It answers.
    #[default]
    Up,
    /// It takes connections, keeps those that there are, and says nothing.
    Silent,
    /// Nobody is there.
    Down,
}

/// Something around the controller that does not work, in this scenario alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impairment {
    /// The workload cluster allows the controller nothing.
    WorkloadForbidden,
    /// Admission refuses the controller's patches of Machines.
    MachinePatches,
    /// The status of the object is refused as too large.
    StatusTooLarge,
    /// The status of the object is refused as invalid.
    StatusInvalid,
    /// The status of the object may not be written.
    StatusForbidden,
    /// Events are refused.
    Events,
    /// Nobody runs Cluster API. Where that is nobody's in the whole world, a scenario has to have it for itself.
    ClusterApi,
    /// The management cluster takes a second for each request.
    SlowManagement,
}

/// A place that a kubeconfig can lead to by mistake.
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

/// A management cluster and a workload cluster, which may be the same, with everybody who lives in them, and a
/// controller.
pub trait World: Send + Sync {
    /// A client of the harness in the management cluster.
    fn management(&self) -> Client;
    /// A client of the harness in the workload cluster.
    fn workload(&self) -> Client;
    /// The namespace that belongs to this scenario alone, in both clusters.
    fn namespace(&self) -> &str;
    /// The time.
    fn now(&self) -> Timestamp;
    /// How long things may take.
    fn pace(&self) -> Pace;
    /// The deliberate steps of the scenario.
    fn steps(&self) -> &Steps;
    /// The version of Cluster API that the controller finds here; the kinds of the provider have it too.
    fn cluster_api(&self) -> &'static str {
        "v1beta2"
    }
    /// What a spec needs here besides what the scenario says, as a merge patch.
    fn spec(&self) -> Value;
    /// An address that no other machine has.
    fn address(&self) -> String;
    /// Makes a Cluster with a control plane, and whatever leads into the workload cluster.
    fn make_cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;
    /// How the provider behaves from now on.
    fn provider(&self, behaviour: Behaviour);
    /// Silences the kubelet of a Node, or lets it speak again.
    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>>;
    /// Cuts a Node off, or lets it be heard again: nobody knows what becomes of its pods. Where that is every Node, a
    /// scenario has to have the world for itself.
    fn cut_off<'a>(&'a self, node: &'a str, is_cut_off: bool) -> BoxFuture<'a, anyhow::Result<()>>;
    /// Lets the controller handle one more kind of a provider.
    fn grant<'a>(&'a self, group: &'a str, plural: &'a str) -> BoxFuture<'a, anyhow::Result<()>>;
    /// The Secret with the kubeconfig that the controller uses; nothing where Nodes are in the management cluster.
    fn kubeconfig_secret(&self) -> Option<String>;
    /// A kubeconfig with new credentials. Those that were good before are good no more.
    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>>;
    /// A kubeconfig that leads the controller into the workload cluster by another line, which can hang.
    fn kubeconfig_by_another_line(&self) -> BoxFuture<'_, anyhow::Result<String>>;
    /// How an API server is from now on. It is the controller's at least; where it is everybody's, a scenario has to
    /// have the world for itself.
    fn set_api_server(&self, side: Side, state: ApiServer) -> BoxFuture<'_, anyhow::Result<()>>;
    /// How that line is from now on: open, silent (connections stay, new ones are taken, and nothing comes back), or cut.
    fn set_other_line(&self, state: ApiServer);
    /// A kubeconfig that leads somewhere else than into the workload cluster.
    fn kubeconfig_to(&self, server: WrongServer) -> BoxFuture<'_, anyhow::Result<String>>;
    /// Makes something fail, or lets it work again.
    fn set_impaired(&self, what: Impairment, is_impaired: bool) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Whether the controller may change Nodes from now on.
    fn allow_node_writes(&self, is_allowed: bool) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Starts the controller.
    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Tells the controller to stop, and waits until it has.
    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Kills the controller where it stands.
    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>>;
    /// Every write of every controller so far, in order.
    fn writes(&self) -> anyhow::Result<Vec<Write>>;
}
