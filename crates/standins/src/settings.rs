//! The settings of the stand-ins: how long steps take and which fail. Tests and the demo change them at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The time each step takes when it works.
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
    /// The interval at which a Node renews its lease.
    ///
    /// A real kubelet does so every 10 s. That is 60,000 writes for each Node and week, of which nobody here reads one:
    /// whether a Node is silent is in the settings.
    pub heartbeat: Duration,
    /// The time a Node may be silent before it counts as lost.
    pub node_monitor_grace: Duration,
    /// From a bound pod to a running one.
    pub pod_start: Duration,
    /// The time a pod takes to stop, unless its annotation says otherwise; never longer than its grace period.
    pub pod_stop: Duration,
    /// The time the pod of a Job runs, unless its annotation says otherwise.
    pub job: Duration,
    /// The time pods stay on a Node that is gone.
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

/// The behaviour of one step of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepBehaviour {
    /// It is done in its time.
    #[default]
    Works,
    /// It is never done, until told otherwise.
    Hangs,
    /// It fails, and the object's status says why.
    Fails(String),
}

/// The behaviour of the provider in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderBehaviour {
    /// Writing the bootstrap data.
    pub bootstrap: StepBehaviour,
    /// Preparing the machine.
    pub provision: StepBehaviour,
    /// The machine's joining the workload cluster as a Node.
    pub join: StepBehaviour,
    /// Giving the machine back when its infrastructure object is deleted.
    pub release: StepBehaviour,
    /// True if the Node goes with the machine. Cluster API deletes it anyway; this is for machines that have none.
    pub node_goes_with_machine: bool,
}

/// The handle. Clones are the same settings.
#[derive(Clone, Debug)]
pub struct StandInSettings {
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
    namespaces: BTreeMap<String, ProviderBehaviour>,
    silent_nodes: BTreeSet<String>,
    cluster_api_is_stopped: bool,
}

impl Default for StandInSettings {
    fn default() -> Self {
        Self::new(Timing::default())
    }
}

impl StandInSettings {
    /// One in which everything works.
    pub fn new(timing: Timing) -> Self {
        let facts = Mutex::new(Facts { timing, ..Facts::default() });
        Self { shared: Arc::new(Shared { facts, version: watch::Sender::new(0) }) }
    }

    /// The current timing.
    pub fn timing(&self) -> Timing {
        self.facts().timing.clone()
    }

    /// Changes how long things take from now on.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        self.change(|facts| change(&mut facts.timing));
    }

    /// Changes how the provider behaves in a namespace. What hung or failed there is tried again.
    pub fn in_namespace(&self, namespace: &str, change: impl FnOnce(&mut ProviderBehaviour)) {
        self.change(|facts| change(facts.namespaces.entry(namespace.to_owned()).or_default()));
    }

    /// The behaviour of the provider in a namespace.
    pub fn behaviour(&self, namespace: &str) -> ProviderBehaviour {
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

    /// Returns true if the kubelet of a Node is silent.
    pub fn is_silent(&self, node: &str) -> bool {
        self.facts().silent_nodes.contains(node)
    }

    /// Stops Cluster API, or lets it run again. What it missed it does then.
    pub fn set_cluster_api_running(&self, is_running: bool) {
        self.change(|facts| facts.cluster_api_is_stopped = !is_running);
    }

    /// Returns true if Cluster API runs.
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
