//! The metrics page: fresh, busy, and after everything was deleted.

use crate::recorded_run::{Record, record};
use crate::seed::{ADDITIONS, BRAKE, CONSTANT, EMERGENCY_BUCKETS, METRICS, RARE, Row};
use five_spot_controller::metrics::PENDING;
use std::collections::{BTreeMap, BTreeSet};

/// The series of a page, each with its value as it is written.
fn series(page: &str) -> BTreeMap<&str, &str> {
    let samples = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let split = |line| str::rsplit_once(line, ' ').unwrap_or_else(|| panic!("{line} is a sample"));
    samples.map(split).collect()
}

/// The series of one metric, the parts of a histogram among them.
fn of<'a>(page: &'a str, row: &Row) -> BTreeMap<&'a str, &'a str> {
    let belongs = |series: &str| {
        let name = series.split('{').next().unwrap_or_default();
        let part = name.strip_prefix(row.name).unwrap_or("no");
        part.is_empty() || (row.kind == "histogram" && ["_bucket", "_sum", "_count"].contains(&part))
    };
    series(page).into_iter().filter(|(series, _)| belongs(series)).collect()
}

fn labels(series: &str) -> BTreeSet<&str> {
    let inside = series.split_once('{').map_or("", |(_, rest)| rest.trim_end_matches('}'));
    inside.split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).filter(|name| *name != "le").collect()
}

fn value<'a>(page: &'a str, name: &str) -> &'a str {
    series(page).get(name).unwrap_or_else(|| panic!("no {name} in\n{page}"))
}

fn number(page: &str, name: &str) -> f64 {
    value(page, name).parse().expect("a number")
}

#[test]
fn every_documented_metric_exists_and_changes() {
    let pages = record();
    for row in METRICS.iter().chain(&ADDITIONS) {
        let Row { name, kind, labels: documented } = row;
        assert!(pages.busy.contains(&format!("# TYPE {name} {kind}\n")), "{name} is a {kind}");
        assert!(pages.busy.contains(&format!("# HELP {name} ")), "{name} is explained");
        let busy = of(&pages.busy, row);
        let documented: BTreeSet<&str> = documented.iter().copied().collect();
        for series in busy.keys() {
            assert_eq!(labels(series), documented, "{series}");
        }
        let changed = [&pages.crowded, &pages.busy, &pages.empty]
            .iter()
            .any(|page| of(page, row) != of(&pages.fresh, row));
        if CONSTANT.contains(name) || PENDING.contains(name) {
            assert!(!changed && busy.values().all(|value| *value == "1"), "{name}: {busy:?}");
        } else if *name != RARE && *name != BRAKE.0 {
            assert!(changed, "nothing that happened has changed {name}: {busy:?}");
        }
    }
}

#[test]
fn the_numbers_are_those_of_the_recorded_run() {
    let Record { fresh, crowded, busy, empty, .. } = record();
    assert_eq!(value(crowded, "fivespot_queue_depth"), "6");
    assert_eq!(value(crowded, "fivespot_queue_oldest_waiting_seconds"), "1");
    // Nobody has taken it back yet, and a rate has to see the first time.
    for counter in ["emergency_reclaims_total", "rapid_re_reclaims_total"] {
        assert_eq!(value(crowded, &format!(r#"fivespot_{counter}{{name="taken",namespace="shop"}}"#)), "0");
        assert!(!crowded.contains(&format!(r#"fivespot_{counter}{{name="shift""#)), "nobody can");
    }
    for (series, expected) in [
        ("fivespot_machines_active", "5"),
        ("fivespot_machines_without_node", "1"),
        (r#"fivespot_machines_by_phase{phase="Active"}"#, "5"),
        (r#"fivespot_machines_by_phase{phase="Disabled"}"#, "1"),
        (r#"fivespot_machines_by_phase{phase="Terminated"}"#, "1"),
        ("fivespot_kill_switch_activations_total", "2"),
        (r#"fivespot_emergency_reclaims_total{name="taken",namespace="shop"}"#, "3"),
        (r#"fivespot_rapid_re_reclaims_total{name="taken",namespace="shop"}"#, "1"),
        (r#"fivespot_emergency_drain_duration_seconds_count{outcome="success"}"#, "3"),
        (r#"fivespot_emergency_drain_duration_seconds_count{outcome="timeout"}"#, "0"),
        (r#"fivespot_reclaim_duration_seconds_count{stage="annotated"}"#, "3"),
        (r#"fivespot_reclaim_duration_seconds_count{stage="pods_gone"}"#, "3"),
        (r#"fivespot_reclaim_duration_seconds_count{stage="machine_deleted"}"#, "3"),
        (r#"fivespot_reclaim_duration_seconds_count{stage="node_gone"}"#, "3"),
        (r#"fivespot_agents{state="missing"}"#, "1"),
        (r#"fivespot_agents{state="ready"}"#, "0"),
        ("fivespot_finalizer_cleanup_timeouts_total", "0"),
        (r#"fivespot_errors_total{error_type="InternalError"}"#, "0"),
        (r#"fivespot_schedule_evaluations_total{result="failure"}"#, "0"),
        // The claim `exp` of the token in the kubeconfig.
        (
            r#"fivespot_workload_credential_expiry_timestamp_seconds{namespace="shop",secret="shop-kubeconfig"}"#,
            "1800000000",
        ),
    ] {
        assert_eq!(value(busy, series), expected, "{series}");
    }
    assert_eq!(value(empty, "fivespot_finalizer_cleanup_timeouts_total"), "1");
    assert_eq!(value(empty, r#"fivespot_errors_total{error_type="FinalizerTimeout"}"#), "1");
    for series in [
        r#"fivespot_reconciliations_total{phase="Error",result="failure"}"#,
        r#"fivespot_errors_total{error_type="CapiError"}"#,
        r#"fivespot_pod_evictions_total{result="failure"}"#,
        r#"fivespot_pod_evictions_total{result="success"}"#,
        r#"fivespot_node_drains_total{result="failure"}"#,
        r#"fivespot_node_drains_total{result="success"}"#,
        r#"fivespot_api_requests_total{code="429",verb="create"}"#,
        r#"fivespot_api_requests_total{code="422",verb="patch"}"#,
        r#"fivespot_watch_age_seconds{resource="scheduledmachines"}"#,
    ] {
        assert!(number(busy, series) > 0.0, "{series}");
    }
    // Lent from a minute past nine, and on the second day since nine.
    let lent = number(busy, r#"fivespot_lent_seconds_total{name="shift",namespace="shop"}"#);
    assert!(lent > 3600.0, "{lent}");
    let bounds: Vec<String> =
        EMERGENCY_BUCKETS.iter().map(|bound| (*bound).to_owned()).chain(["+Inf".to_owned()]).collect();
    for outcome in ["success", "timeout", "error"] {
        for bound in &bounds {
            let series = format!(
                r#"fivespot_emergency_drain_duration_seconds_bucket{{outcome="{outcome}",le="{bound}"}}"#
            );
            assert_eq!(value(fresh, &series), "0");
        }
    }
    // The alert on slow reconciles asks for more than 30 s.
    assert_eq!(
        value(fresh, r#"fivespot_reconciliation_duration_seconds_bucket{phase="Active",le="60"}"#),
        "0"
    );
}

#[test]
fn what_is_gone_has_no_series() {
    let Record { fresh, busy, empty, .. } = record();
    assert!(busy.contains(r#"namespace="shop""#));
    assert!(!empty.contains(r#"namespace="shop""#), "{empty}");
    assert!(!empty.contains("fivespot_next_boundary_timestamp_seconds"));
    for (series, value) in series(empty) {
        if series.starts_with("fivespot_machines") || series.starts_with("fivespot_agents") {
            assert_eq!(value, "0", "{series}");
        }
    }
    let fixed = |page: &str| -> BTreeSet<String> {
        let grows = ["fivespot_api_requests_total", "fivespot_watch_age_seconds"];
        series(page)
            .into_keys()
            .filter(|name| !grows.iter().any(|grown| name.starts_with(grown)))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(fixed(fresh), fixed(empty), "what is fixed exists from the start, and nothing else stays");
}
