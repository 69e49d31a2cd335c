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
pub const ADDITIONS: [Row; 9] = [
    row("fivespot_machines_without_node", "gauge", &[]),
    row("fivespot_tz_database_info", "gauge", &["version"]),
    row("fivespot_next_boundary_timestamp_seconds", "gauge", &[]),
    row("fivespot_watch_age_seconds", "gauge", &["resource"]),
    row("fivespot_queue_depth", "gauge", &[]),
    row("fivespot_queue_oldest_waiting_seconds", "gauge", &[]),
    row("fivespot_api_requests_total", "counter", &["verb", "code"]),
    row("fivespot_lent_seconds_total", "counter", &["namespace", "name"]),
    row("fivespot_actions_skipped_total", "counter", &["reason"]),
];

/// Counts races with others, which a run may or may not have.
pub const RARE: &str = "fivespot_actions_skipped_total";

/// Always 1, from the start: what they say is in their labels.
pub const CONSTANT: [&str; 3] =
    ["fivespot_controller_info", "fivespot_is_leader", "fivespot_tz_database_info"];

/// The buckets of the emergency drain.
pub const EMERGENCY_BUCKETS: [&str; 11] = ["0.5", "1", "2.5", "5", "10", "15", "20", "30", "45", "60", "90"];

/// Reasons of events: type, reason. The last five are documented elsewhere: in the troubleshooting document, and as
/// additions.
pub const EVENTS: [(&str, &str); 18] = [
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
];

/// Alerts: name, expression, for how long.
pub const ALERTS: [(&str, &str, &str); 9] = [
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
    ("FiveSpotMachinesInError", r#"fivespot_machines_by_phase{phase="Error"} > 0"#, "15m"),
    ("FiveSpotMachinesWithoutNode", "fivespot_machines_without_node > 0", "30m"),
    (
        "FiveSpotEmergencySlow",
        "histogram_quantile(0.95, sum by (le) (rate(fivespot_emergency_drain_duration_seconds_bucket[30m]))) > 30",
        "5m",
    ),
];
