//! The settings of the stand-ins: the duration of steps and the steps that fail. Tests and the demo change
//! them at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The duration of each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Writing the bootstrap data of a machine.
    pub bootstrap: Duration,
    /// Provisioning a machine.
    pub provision: Duration,
    /// From a provisioned machine to its Node.
    pub join: Duration,
    /// Releasing a machine.
    pub release: Duration,
    /// From a new to a Ready Node.
    pub node_ready: Duration,
    /// The interval at which a Node renews its lease.
    ///
    /// A real kubelet does this every 10 s, which is 60,000 writes per Node and week that no component here
    /// reads: the settings say whether a Node is silent.
    pub heartbeat: Duration,
    /// The time for which a Node may be silent before it is unreachable.
    pub node_monitor_grace: Duration,
    /// From a bound pod to a running one.
    pub pod_start: Duration,
    /// The time that a pod takes to stop, unless its annotation says otherwise; limited by its grace period.
    pub pod_stop: Duration,
    /// The time for which the pod of a Job runs, unless its annotation says otherwise.
    pub job: Duration,
    /// The time for which pods stay on a deleted Node.
    pub orphaned_pods: Duration,
    /// The interval between two drain passes, and between two checks of attached volumes, by Cluster API.
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
            // The default of the controller-manager.
            node_monitor_grace: Duration::from_secs(50),
            pod_start: Duration::from_secs(2),
            // As observed with a real pod that handles SIGTERM.
            pod_stop: Duration::from_millis(3500),
            job: Duration::from_mins(10),
            // As observed with the real pod garbage collector.
            orphaned_pods: Duration::from_secs(43),
            // The value of Cluster API, which cannot be changed there.
            drain_pass: Duration::from_secs(20),
        }
    }
}

/// The behaviour of one step of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepBehaviour {
    /// The step succeeds after its duration.
    #[default]
    Works,
    /// The step hangs until the settings change.
    Hangs,
    /// The step fails, and the status of the object has this message.
    Fails(String),
}

/// The behaviour of the provider in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderBehaviour {
    /// Writing the bootstrap data.
    pub bootstrap: StepBehaviour,
    /// Provisioning the machine.
    pub provision: StepBehaviour,
    /// Joining the workload cluster as a Node.
    pub join: StepBehaviour,
    /// Releasing the machine when its infrastructure object is deleted.
    pub release: StepBehaviour,
    /// True if the provider deletes the Node with the machine. Cluster API deletes it in any case; this is
    /// for infrastructure objects without a Machine.
    pub node_goes_with_machine: bool,
}

/// The settings of the stand-ins. Clones share them.
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
    /// Settings in which every step succeeds.
    pub fn new(timing: Timing) -> Self {
        let facts = Mutex::new(Facts { timing, ..Facts::default() });
        Self { shared: Arc::new(Shared { facts, version: watch::Sender::new(0) }) }
    }

    /// The current timing.
    pub fn timing(&self) -> Timing {
        self.facts().timing.clone()
    }

    /// Changes the durations from now on.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        self.change(|facts| change(&mut facts.timing));
    }

    /// Changes the behaviour of the provider in a namespace. Steps that hung or failed there are retried.
    pub fn in_namespace(&self, namespace: &str, change: impl FnOnce(&mut ProviderBehaviour)) {
        self.change(|facts| change(facts.namespaces.entry(namespace.to_owned()).or_default()));
    }

    /// The behaviour of the provider in a namespace.
    pub fn behaviour(&self, namespace: &str) -> ProviderBehaviour {
        self.facts().namespaces.get(namespace).cloned().unwrap_or_default()
    }

    /// Silences the kubelet of a Node (no heartbeats, no pod started or stopped), or ends its silence.
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

    /// Stops Cluster API, or starts it again, whereupon it catches up.
    pub fn set_cluster_api_running(&self, is_running: bool) {
        self.change(|facts| facts.cluster_api_is_stopped = !is_running);
    }

    /// Returns true if Cluster API is running.
    pub fn is_cluster_api_running(&self) -> bool {
        !self.facts().cluster_api_is_stopped
    }

    /// A channel that reports changes of the settings.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts());
        self.shared.version.send_modify(|version| *version += 1);
    }

    /// A panic while the lock was held leaves at worst one setting partly changed, in a test that has failed anyway.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
