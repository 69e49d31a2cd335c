//! Cases that the run of the operator's tests does not have.

use super::{ErrorKind, Metrics, Verdict};
use five_spot_cluster::{Call, Exchange, ObjectKey, RequestObserver};
use five_spot_core::shard::Shard;
use http::{Method, Request, StatusCode};
use std::time::Duration;

#[track_caller]
fn check(metrics: &Metrics, series: &str, expected: &str) {
    let page = metrics.page();
    let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    assert_eq!(value, Some(expected), "{series}");
}

fn answer(metrics: &Metrics, method: Method, path: &str, status: Option<u16>) {
    let request = Request::builder().method(method).uri(path).body(()).expect("a request");
    let status = status.map(|code| StatusCode::from_u16(code).expect("a code"));
    metrics.answered(&Exchange { call: Call::of(&request), status, took: Duration::ZERO });
}

#[test]
fn attempts_to_remove_pods_are_told_apart() {
    const POD: &str = "/api/v1/namespaces/shop/pods/a";
    const EVICTION: &str = "/api/v1/namespaces/shop/pods/a/eviction";
    for (method, path, status, result) in [
        (Method::POST, EVICTION, Some(201), Some("success")),
        (Method::POST, EVICTION, Some(404), Some("success")),
        (Method::POST, EVICTION, Some(409), Some("success")),
        (Method::POST, EVICTION, Some(429), Some("failure")),
        (Method::POST, EVICTION, Some(500), Some("error")),
        (Method::POST, EVICTION, None, Some("error")),
        (Method::DELETE, POD, Some(200), Some("success")),
        (Method::DELETE, POD, Some(404), Some("success")),
        (Method::DELETE, POD, Some(429), Some("error")),
        (Method::DELETE, POD, Some(403), Some("error")),
        (Method::GET, POD, Some(200), None),
        (Method::PATCH, POD, Some(200), None),
        (Method::DELETE, "/apis/example.org/v1/namespaces/shop/pods/a", Some(200), None),
        (Method::DELETE, "/api/v1/namespaces/shop/secrets/a", Some(200), None),
    ] {
        let metrics = Metrics::default();
        answer(&metrics, method.clone(), path, status);
        for known in ["success", "failure", "error"] {
            let expected = if result == Some(known) { "1" } else { "0" };
            check(&metrics, &format!(r#"fivespot_pod_evictions_total{{result="{known}"}}"#), expected);
        }
    }
}

#[test]
fn requests_are_counted_by_verb_and_code_only() {
    let metrics = Metrics::default();
    for name in ["a", "b"] {
        answer(&metrics, Method::GET, &format!("/api/v1/nodes/{name}"), Some(200));
    }
    answer(&metrics, Method::GET, "/api/v1/nodes?watch=true", None);
    check(&metrics, r#"fivespot_api_requests_total{code="200",verb="get"}"#, "2");
    check(&metrics, r#"fivespot_api_requests_total{code="none",verb="watch"}"#, "1");
}

#[test]
fn a_reconcile_that_breaks_off_is_an_error_of_ours() {
    let metrics = Metrics::default();
    let verdict = Verdict::Error(ErrorKind::InternalError);
    metrics.reconciled(&ObjectKey::new("shop", "a"), None, verdict, Duration::from_millis(20));
    check(&metrics, r#"fivespot_reconciliations_total{phase="Unknown",result="error"}"#, "1");
    check(&metrics, r#"fivespot_errors_total{error_type="InternalError"}"#, "1");
    check(&metrics, r#"fivespot_reconciliation_duration_seconds_bucket{phase="Unknown",le="0.025"}"#, "1");
}

#[test]
fn error_types_are_camel_case_and_known_from_the_start() {
    let page = Metrics::default().page();
    for kind in ErrorKind::ALL {
        let word = kind.as_str();
        assert!(word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphanumeric), "{word}");
        assert!(page.contains(&format!("fivespot_errors_total{{error_type=\"{word}\"}} 0\n")), "{word}");
    }
    for documented in ["CapiError", "ScheduleError", "ValidationError", "KubeError"] {
        assert!(ErrorKind::ALL.iter().any(|kind| kind.as_str() == documented), "{documented}");
    }
}

#[test]
fn the_instance_and_the_time_zones_are_named() {
    let metrics = Metrics::new(Shard::new(3, 4).expect("a shard"));
    let version = env!("CARGO_PKG_VERSION");
    check(&metrics, &format!(r#"fivespot_controller_info{{instance_id="3",version="{version}"}}"#), "1");
    let zones = five_spot_core::schedule::tz_database_version().expect("a version");
    check(&metrics, &format!(r#"fivespot_tz_database_info{{version="{zones}"}}"#), "1");
}
