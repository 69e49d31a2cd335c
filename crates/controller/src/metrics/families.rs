//! Every family of metrics: its name, its help, its labels, its buckets. What is fixed exists at 0 from the start, so
//! that `rate()` sees the first change.

use super::errors::ErrorKind;
use five_spot_api::{Phase, ReclaimStage};
use five_spot_cluster::execute::SkipReason;
use five_spot_cluster::view::AgentState;
use prometheus::core::{Collector, GenericCounterVec, GenericGaugeVec};
use prometheus::{Counter, CounterVec, Gauge, GaugeVec, HistogramOpts, HistogramVec, Opts, Registry};

/// The `phase` of a reconcile that ended before anything was known of its object.
pub(super) const UNKNOWN_PHASE: &str = "Unknown";

/// The results of an operation: done; refused or given up; failed because of the API.
pub(super) const RESULTS: [&str; 3] = ["success", "failure", "error"];

/// The outcomes of a drain in an emergency.
pub(super) const OUTCOMES: [&str; 3] = ["success", "timeout", "error"];

/// The relations of an object to this instance.
pub(super) const SHARD_STATES: [&str; 3] = ["owned", "foreign", "waiting"];

/// From a reconcile that finds nothing to do to one that waits for several answers until their deadlines.
const RECONCILE_BUCKETS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0];

/// Sized for the 60 s that an emergency waits for pods.
const EMERGENCY_BUCKETS: &[f64] = &[0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0];

/// From an annotation that is seen at once to a Node that Cluster API leaves behind for minutes.
const RECLAIM_BUCKETS: &[f64] =
    &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0];

/// The family with the time for which machines have been lent. It has a series for each object, and is not kept here.
pub(super) const LENT_SECONDS: &str = "fivespot_lent_seconds_total";

/// Its help.
pub(super) const LENT_SECONDS_HELP: &str = "Time for which a machine had a Ready node in its cluster";

/// The families, by the names of their metrics without the prefix.
pub(super) struct Families {
    pub(super) reconciliations: CounterVec,
    pub(super) reconciliation_duration: HistogramVec,
    pub(super) machines_active: Gauge,
    pub(super) machines_without_node: Gauge,
    pub(super) machines_by_phase: GaugeVec,
    pub(super) schedule_evaluations: CounterVec,
    pub(super) kill_switch_activations: Gauge,
    pub(super) controller_info: GaugeVec,
    pub(super) is_leader: Gauge,
    pub(super) errors: CounterVec,
    pub(super) finalizer_cleanup_timeouts: Counter,
    pub(super) node_drains: CounterVec,
    pub(super) pod_evictions: CounterVec,
    pub(super) emergency_drain_duration: HistogramVec,
    pub(super) reclaim_duration: HistogramVec,
    pub(super) emergency_reclaims: CounterVec,
    pub(super) rapid_re_reclaims: CounterVec,
    pub(super) agents: GaugeVec,
    pub(super) tz_database_info: GaugeVec,
    pub(super) next_boundary: GaugeVec,
    pub(super) watch_age: GaugeVec,
    pub(super) queue_depth: Gauge,
    pub(super) queue_oldest_waiting: Gauge,
    pub(super) api_requests: CounterVec,
    pub(super) actions_skipped: CounterVec,
    pub(super) workload_credential_expiry: GaugeVec,
    pub(super) instance_count: Gauge,
    pub(super) shard_objects: GaugeVec,
    pub(super) removals_held: Gauge,
}

impl Families {
    #[expect(clippy::too_many_lines, reason = "one entry for each metric")]
    pub(super) fn new() -> Self {
        let families = Self {
            reconciliations: counters(
                "reconciliations_total",
                "Reconciliation attempts",
                &["phase", "result"],
            ),
            reconciliation_duration: histograms(
                "reconciliation_duration_seconds",
                "Duration of reconciliations",
                "phase",
                RECONCILE_BUCKETS,
            ),
            machines_active: gauge("machines_active", "Machines in phase Active"),
            machines_without_node: gauge(
                "machines_without_node",
                "Machines in phase Active without a Ready Node: joining, lost, or not Ready",
            ),
            machines_by_phase: gauges("machines_by_phase", "Machines by phase", &["phase"]),
            schedule_evaluations: counters("schedule_evaluations_total", "Schedule evaluations", &["result"]),
            kill_switch_activations: gauge(
                "kill_switch_activations_total",
                "Kill switches that took effect since the start",
            ),
            controller_info: gauges(
                "controller_info",
                "Always 1; the version and the instance are labels",
                &["version", "instance_id"],
            ),
            is_leader: gauge("is_leader", "1 if this instance works on its objects, 0 if it is on standby"),
            errors: counters("errors_total", "Failed reconciliations by cause", &["error_type"]),
            finalizer_cleanup_timeouts: counter(
                "finalizer_cleanup_timeouts_total",
                "Deleted objects whose cleanup exceeded its time limit",
            ),
            node_drains: counters("node_drains_total", "Node drains", &["result"]),
            pod_evictions: counters(
                "pod_evictions_total",
                "Attempts to remove a pod from a node that is being drained",
                &["result"],
            ),
            emergency_drain_duration: histograms(
                "emergency_drain_duration_seconds",
                "Time until the pods of a reclaimed node were gone",
                "outcome",
                EMERGENCY_BUCKETS,
            ),
            reclaim_duration: histograms(
                "reclaim_duration_seconds",
                "Time from the request of the agent to each stage of a reclaim",
                "stage",
                RECLAIM_BUCKETS,
            ),
            emergency_reclaims: counters(
                "emergency_reclaims_total",
                "Emergency reclaims by machine",
                &["namespace", "name"],
            ),
            rapid_re_reclaims: counters(
                "rapid_re_reclaims_total",
                "Reclaims that followed others within ten minutes, by machine",
                &["namespace", "name"],
            ),
            agents: gauges(
                "agents",
                "Nodes with killIfCommands by the state of their reclaim agent",
                &["state"],
            ),
            tz_database_info: gauges(
                "tz_database_info",
                "Always 1; the version of the time-zone database is a label",
                &["version"],
            ),
            next_boundary: gauges(
                "next_boundary_timestamp_seconds",
                "Time of the next change of whether a machine is wanted; absent if there is none",
                &[],
            ),
            watch_age: gauges(
                "watch_age_seconds",
                "Time since the last activity of the least active open watch of a resource",
                &["resource"],
            ),
            queue_depth: gauge("queue_depth", "Due objects that wait for a worker"),
            queue_oldest_waiting: gauge(
                "queue_oldest_waiting_seconds",
                "Longest time that a due object has waited for a worker",
            ),
            api_requests: counters("api_requests_total", "Requests to API servers", &["verb", "code"]),
            actions_skipped: counters(
                "actions_skipped_total",
                "Actions that were skipped because a precondition was gone",
                &["reason"],
            ),
            workload_credential_expiry: gauges(
                "workload_credential_expiry_timestamp_seconds",
                "Expiry time of the token or client certificate in the kubeconfig of a workload cluster",
                &["namespace", "secret"],
            ),
            instance_count: gauge("instances", "The value of --instance-count of this instance"),
            shard_objects: gauges(
                "shard_objects",
                "Objects that this instance works on, that belong to others, and that it waits for",
                &["state"],
            ),
            removals_held: gauge(
                "removals_held",
                "Machines whose removal is held because too many removals were unplanned",
            ),
        };
        families.exist();
        families
    }

    /// Makes every series whose labels are known.
    fn exist(&self) {
        for phase in Phase::ALL {
            self.machines_by_phase.with_label_values(&[phase.as_str()]);
            self.reconciliation_duration.with_label_values(&[phase.as_str()]);
            for result in RESULTS {
                self.reconciliations.with_label_values(&[phase.as_str(), result]);
            }
        }
        for result in RESULTS {
            self.schedule_evaluations.with_label_values(&[result]);
            self.node_drains.with_label_values(&[result]);
            self.pod_evictions.with_label_values(&[result]);
        }
        for outcome in OUTCOMES {
            self.emergency_drain_duration.with_label_values(&[outcome]);
        }
        for stage in ReclaimStage::ALL {
            self.reclaim_duration.with_label_values(&[stage.as_str()]);
        }
        for state in AgentState::ALL {
            self.agents.with_label_values(&[state.as_str()]);
        }
        for reason in SkipReason::ALL {
            self.actions_skipped.with_label_values(&[reason.as_str()]);
        }
        for state in SHARD_STATES {
            self.shard_objects.with_label_values(&[state]);
        }
        for error in ErrorKind::ALL {
            self.errors.with_label_values(&[error.as_str()]);
        }
    }

    pub(super) fn register(&self, registry: &Registry) {
        let families: [Box<dyn Collector>; 29] = [
            Box::new(self.reconciliations.clone()),
            Box::new(self.reconciliation_duration.clone()),
            Box::new(self.machines_active.clone()),
            Box::new(self.machines_without_node.clone()),
            Box::new(self.machines_by_phase.clone()),
            Box::new(self.schedule_evaluations.clone()),
            Box::new(self.kill_switch_activations.clone()),
            Box::new(self.controller_info.clone()),
            Box::new(self.is_leader.clone()),
            Box::new(self.errors.clone()),
            Box::new(self.finalizer_cleanup_timeouts.clone()),
            Box::new(self.node_drains.clone()),
            Box::new(self.pod_evictions.clone()),
            Box::new(self.emergency_drain_duration.clone()),
            Box::new(self.reclaim_duration.clone()),
            Box::new(self.emergency_reclaims.clone()),
            Box::new(self.rapid_re_reclaims.clone()),
            Box::new(self.agents.clone()),
            Box::new(self.tz_database_info.clone()),
            Box::new(self.next_boundary.clone()),
            Box::new(self.watch_age.clone()),
            Box::new(self.queue_depth.clone()),
            Box::new(self.queue_oldest_waiting.clone()),
            Box::new(self.api_requests.clone()),
            Box::new(self.actions_skipped.clone()),
            Box::new(self.workload_credential_expiry.clone()),
            Box::new(self.instance_count.clone()),
            Box::new(self.shard_objects.clone()),
            Box::new(self.removals_held.clone()),
        ];
        for family in families {
            registry.register(family).expect("every name is given once");
        }
    }
}

fn named(name: &str, help: &str) -> Opts {
    Opts::new(format!("fivespot_{name}"), help)
}

fn counter(name: &str, help: &str) -> Counter {
    Counter::with_opts(named(name, help)).expect("a name and help")
}

pub(super) fn gauge(name: &str, help: &str) -> Gauge {
    Gauge::with_opts(named(name, help)).expect("a name and help")
}

pub(super) fn counters(name: &str, help: &str, labels: &[&str]) -> CounterVec {
    GenericCounterVec::new(named(name, help), labels).expect("a name, help and labels")
}

fn gauges(name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    GenericGaugeVec::new(named(name, help), labels).expect("a name, help and labels")
}

fn histograms(name: &str, help: &str, label: &str, buckets: &[f64]) -> HistogramVec {
    let opts = HistogramOpts::from(named(name, help)).buckets(buckets.to_vec());
    HistogramVec::new(opts, &[label]).expect("a name, help and rising buckets")
}
