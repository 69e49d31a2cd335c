//! How long things take and what goes wrong. A handle that tests and the demo hold while the actors play.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long each step takes when it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Writing the bootstrap data of a machine.
    pub bootstrap: Duration,
    /// Preparing a machine.
    pub provision: Duration,
    /// From a prepared machine to its Node.
    pub join: Duration,
    /// Giving a machine back.
    pub release: Duration,
    /// From a new Node to its being Ready.
    pub node_ready: Duration,
    /// How often a Node renews its lease.
    ///
    /// A real kubelet does so every 10 s. That is 60,000 writes for each Node and week, of which nobody here reads one:
    /// whether a Node is silent is in the scenario.
    pub heartbeat: Duration,
    /// How long a Node may be silent before it counts as lost.
    pub node_monitor_grace: Duration,
    /// From a bound pod to a running one.
    pub pod_start: Duration,
    /// How long a pod takes to stop, unless its annotation says otherwise; never longer than its grace.
    pub pod_stop: Duration,
    /// How long the pod of a Job runs, unless its annotation says otherwise.
    pub job: Duration,
    /// How long pods stay on a Node that is gone.
    pub orphaned_pods: Duration,
    /// Between two passes of a drain, and two looks at attached volumes, by Cluster API.
    pub drain_pass: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            bootstrap: Duration::from_secs(1),
            provision: Duration::from_secs(30),
            join: Duration::from_secs(20),
            release: Duration::from_secs(5),
            node_ready: Duration::from_secs(5),
            heartbeat: Duration::from_hours(1),
            // The controller-manager's default.
            node_monitor_grace: Duration::from_secs(50),
            pod_start: Duration::from_secs(2),
            // What a real pod that handles TERM was seen to take.
            pod_stop: Duration::from_millis(3500),
            job: Duration::from_mins(10),
            // As was seen of the real pod garbage collector.
            orphaned_pods: Duration::from_secs(43),
            // Cluster API's own, which cannot be set there.
            drain_pass: Duration::from_secs(20),
        }
    }
}

/// How one step of the provider goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Conduct {
    /// It is done in its time.
    #[default]
    Works,
    /// It is never done, until told otherwise.
    Hangs,
    /// It fails, and the object's status says why.
    Fails(String),
}

/// How the provider behaves in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Writing the bootstrap data.
    pub bootstrap: Conduct,
    /// Preparing the machine.
    pub provision: Conduct,
    /// The machine's joining the workload cluster as a Node.
    pub join: Conduct,
    /// Giving the machine back when its infrastructure object is deleted.
    pub release: Conduct,
    /// Whether the Node goes with the machine. Cluster API deletes it anyway; this is for machines that have none.
    pub node_goes_with_machine: bool,
}

/// The handle. Clones are the same scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    facts: Mutex<Facts>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Facts {
    timing: Timing,
    namespaces: BTreeMap<String, Behaviour>,
    silent_nodes: BTreeSet<String>,
    cluster_api_is_stopped: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self::new(Timing::default())
    }
}

impl Scenario {
    /// One in which everything works.
    pub fn new(timing: Timing) -> Self {
        let facts = Mutex::new(Facts { timing, ..Facts::default() });
        Self { shared: Arc::new(Shared { facts, version: watch::Sender::new(0) }) }
    }

    /// How long things take now.
    pub fn timing(&self) -> Timing {
        self.facts().timing.clone()
    }

    /// Changes how long things take from now on.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        self.change(|facts| change(&mut facts.timing));
    }

    /// Changes how the provider behaves in a namespace. What hung or failed there is tried again.
    pub fn in_namespace(&self, namespace: &str, change: impl FnOnce(&mut Behaviour)) {
        self.change(|facts| change(facts.namespaces.entry(namespace.to_owned()).or_default()));
    }

    /// How the provider behaves in a namespace.
    pub fn behaviour(&self, namespace: &str) -> Behaviour {
        self.facts().namespaces.get(namespace).cloned().unwrap_or_default()
    }

    /// Silences the kubelet of a Node: no heartbeats, no pod started or stopped. Or lets it speak again.
    pub fn set_silent(&self, node: &str, is_silent: bool) {
        self.change(|facts| {
            if is_silent {
                facts.silent_nodes.insert(node.to_owned());
            } else {
                facts.silent_nodes.remove(node);
            }
        });
    }

    /// Whether the kubelet of a Node is silent.
    pub fn is_silent(&self, node: &str) -> bool {
        self.facts().silent_nodes.contains(node)
    }

    /// Stops Cluster API, or lets it run again. What it missed it does then.
    pub fn set_cluster_api_running(&self, is_running: bool) {
        self.change(|facts| facts.cluster_api_is_stopped = !is_running);
    }

    /// Whether Cluster API runs.
    pub fn is_cluster_api_running(&self) -> bool {
        !self.facts().cluster_api_is_stopped
    }

    /// The news that something was changed here.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts());
        self.shared.version.send_modify(|version| *version += 1);
    }

    /// A panic while it was held leaves at worst one fact half told, in a test that has failed anyway.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
