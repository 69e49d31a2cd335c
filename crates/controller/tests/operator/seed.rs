//! The tables of the monitoring document, typed by hand.

/// A metric: its name, type and labels.
pub struct Row {
    pub name: &'static str,
    pub kind: &'static str,
    pub labels: &'static [&'static str],
}

const fn row(name: &'static str, kind: &'static str, labels: &'static [&'static str]) -> Row {
    Row { name, kind, labels }
}

/// The documented metrics.
pub const METRICS: [Row; 15] = [
    row("fivespot_reconciliations_total", "counter", &["phase", "result"]),
    row("fivespot_reconciliation_duration_seconds", "histogram", &["phase"]),
    row("fivespot_machines_active", "gauge", &[]),
    row("fivespot_machines_by_phase", "gauge", &["phase"]),
    row("fivespot_schedule_evaluations_total", "counter", &["result"]),
    row("fivespot_kill_switch_activations_total", "gauge", &[]),
    row("fivespot_controller_info", "gauge", &["version", "instance_id"]),
    row("fivespot_is_leader", "gauge", &[]),
    row("fivespot_errors_total", "counter", &["error_type"]),
    row("fivespot_finalizer_cleanup_timeouts_total", "counter", &[]),
    row("fivespot_node_drains_total", "counter", &["result"]),
    row("fivespot_pod_evictions_total", "counter", &["result"]),
    row("fivespot_emergency_drain_duration_seconds", "histogram", &["outcome"]),
    row("fivespot_emergency_reclaims_total", "counter", &["namespace", "name"]),
    row("fivespot_rapid_re_reclaims_total", "counter", &["namespace", "name"]),
];

/// The metrics that 5-Spot adds.
pub const ADDITIONS: [Row; 15] = [
    row("fivespot_machines_without_node", "gauge", &[]),
    row("fivespot_tz_database_info", "gauge", &["version"]),
    row("fivespot_next_boundary_timestamp_seconds", "gauge", &[]),
    row("fivespot_watch_age_seconds", "gauge", &["resource"]),
    row("fivespot_queue_depth", "gauge", &[]),
    row("fivespot_queue_oldest_waiting_seconds", "gauge", &[]),
    row("fivespot_api_requests_total", "counter", &["verb", "code"]),
    row("fivespot_lent_seconds_total", "counter", &["namespace", "name"]),
    row("fivespot_actions_skipped_total", "counter", &["reason"]),
    row("fivespot_workload_credential_expiry_timestamp_seconds", "gauge", &["namespace", "secret"]),
    row("fivespot_reclaim_duration_seconds", "histogram", &["stage"]),
    row("fivespot_agents", "gauge", &["state"]),
    row("fivespot_instances", "gauge", &[]),
    row("fivespot_shard_objects", "gauge", &["state"]),
    row("fivespot_removals_held", "gauge", &[]),
];

/// Counts races with others, which a run may or may not have.
pub const RARE: &str = "fivespot_actions_skipped_total";

/// The metric and the event of the brake, which needs a fleet: `tests/fleet/brake.rs`.
pub const BRAKE: (&str, &str) = ("fivespot_removals_held", "TooManyRemovals");

/// Always 1, from the start: what they say is in their labels, or they have another value with other settings.
pub const CONSTANT: [&str; 4] =
    ["fivespot_controller_info", "fivespot_is_leader", "fivespot_tz_database_info", "fivespot_instances"];

/// The buckets of the emergency drain.
pub const EMERGENCY_BUCKETS: [&str; 11] = ["0.5", "1", "2.5", "5", "10", "15", "20", "30", "45", "60", "90"];

/// Reasons of events: type, reason. The last six are documented elsewhere: in the troubleshooting document, and as
/// additions.
pub const EVENTS: [(&str, &str); 20] = [
    ("Normal", "MachineCreated"),
    ("Normal", "ScheduleActive"),
    ("Normal", "ScheduleInactive"),
    ("Normal", "GracePeriodActive"),
    ("Normal", "NodeDraining"),
    ("Normal", "NodeDrained"),
    ("Normal", "MachineDeleted"),
    ("Normal", "ScheduleDisabled"),
    ("Warning", "ReconcileFailed"),
    ("Warning", "KillSwitchActivated"),
    ("Warning", "EmergencyReclaim"),
    ("Warning", "EmergencyReclaimDisabledSchedule"),
    ("Warning", "RapidReReclaim"),
    ("Warning", "FinalizerCleanupTimedOut"),
    ("Normal", "Recovered"),
    ("Warning", "NodeLost"),
    ("Warning", "NodeLeftBehind"),
    ("Warning", "DrainForced"),
    ("Warning", "TooManyRemovals"),
    ("Warning", "MachineInUse"),
];

/// Alerts: name, expression, for how long.
pub const ALERTS: [(&str, &str, &str); 22] = [
    ("FiveSpotNoLeader", "sum(fivespot_is_leader) == 0", "5m"),
    ("FiveSpotHighFailureRate", r#"rate(fivespot_reconciliations_total{result="failure"}[5m]) > 0.1"#, "10m"),
    (
        "FiveSpotSlowReconciliation",
        "histogram_quantile(0.99, rate(fivespot_reconciliation_duration_seconds_bucket[5m])) > 30",
        "15m",
    ),
    (
        "FiveSpotEmergencyDrainTimeoutRising",
        r#"sum(rate(fivespot_emergency_drain_duration_seconds_count{outcome="timeout"}[10m])) > 0"#,
        "10m",
    ),
    (
        "FiveSpotRapidReReclaim",
        "sum by (namespace, name) (rate(fivespot_rapid_re_reclaims_total[15m])) > 0",
        "5m",
    ),
    ("FiveSpotFinalizerCleanupTimeouts", "rate(fivespot_finalizer_cleanup_timeouts_total[15m]) > 0", "5m"),
    ("FiveSpotMachinesInError", r#"sum(fivespot_machines_by_phase{phase="Error"}) > 0"#, "15m"),
    ("FiveSpotMachinesWithoutNode", "sum(fivespot_machines_without_node) > 0", "30m"),
    (
        "FiveSpotEmergencySlow",
        r#"histogram_quantile(0.95, sum by (le) (rate(fivespot_reclaim_duration_seconds_bucket{stage="machine_deleted"}[30m]))) > 30"#,
        "5m",
    ),
    ("FiveSpotControllerMissing", "absent(fivespot_controller_info)", "5m"),
    (
        "FiveSpotShutdownStuck",
        r#"quantile_over_time(0.05, sum(fivespot_machines_by_phase{phase="ShuttingDown"})[2h:1m]) > 0 and count_over_time(sum(fivespot_machines_by_phase{phase="ShuttingDown"})[2h:1m]) > 90"#,
        "10m",
    ),
    ("FiveSpotEmergencyStuck", r#"sum(fivespot_machines_by_phase{phase="EmergencyRemove"}) > 0"#, "5m"),
    ("FiveSpotJoinFailures", r#"sum(increase(fivespot_errors_total{error_type="JoinError"}[1h])) > 0"#, "5m"),
    (
        "FiveSpotDrainDeadlineExceeded",
        r#"sum(increase(fivespot_node_drains_total{result="failure"}[30m])) > 0"#,
        "1m",
    ),
    ("FiveSpotWatchStale", "fivespot_watch_age_seconds > 180", "5m"),
    ("FiveSpotBackoffPilingUp", "300 * sum(rate(fivespot_errors_total[15m])) > 10", "15m"),
    ("FiveSpotQueueStalled", "fivespot_queue_oldest_waiting_seconds > 60", "5m"),
    (
        "FiveSpotWorkloadCredentialExpiring",
        "min by (namespace, secret) (fivespot_workload_credential_expiry_timestamp_seconds) - time() < 7 * 86400",
        "15m",
    ),
    ("FiveSpotAgentsNotReady", r#"sum(fivespot_agents{state=~"not_ready|missing"}) > 0"#, "15m"),
    ("FiveSpotShardMismatch", "max(fivespot_instances) != min(fivespot_instances)", "10m"),
    (
        "FiveSpotShardWithoutLeader",
        "(count(count by (instance_id) (fivespot_controller_info * on (job, instance) group_left () (fivespot_is_leader == 1))) \
         or vector(0)) < max(fivespot_instances)",
        "5m",
    ),
    ("FiveSpotRemovalsHeld", "sum(fivespot_removals_held) > 0", "1m"),
];
