//! The ends of emergencies, by the histogram.

use crate::play::{is_lent, machine, node, reclaim};
use crate::world::World;
use five_spot_apiserver::faults::{Fault, RequestKind, Rule, Trigger};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;

/// A machine that is lent, with a pod on it that does not leave by itself.
async fn lent() -> World {
    let mut world = World::new("off");
    world.lend(&machine("a", &json!({})));
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("a to be lent", async || is_lent(&world, "a").await).await;
    world.create(
        "/api/v1/namespaces/shop/pods",
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stays", "namespace": "shop", "finalizers": ["example.org/stay"]},
            "spec": {"nodeName": node("a"), "containers": [{"name": "main", "image": "example.org/app:1"}]},
        }),
    );
    world
}

/// The value of a series, as it is written.
fn value(world: &World, series: &str) -> String {
    let page = world.metrics.page();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("fivespot_{series} ")));
    line.unwrap_or_else(|| panic!("{series}")).to_owned()
}

fn counted(world: &World, series: &str) -> f64 {
    value(world, series).parse().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_stays_is_a_timeout_after_a_minute() {
    let mut world = lent().await;
    reclaim(&world, "a").await;
    world.phase("a", "EmergencyRemove").await;
    world.until(0, "09:05:00").await;
    assert_eq!(value(&world, r#"emergency_drain_duration_seconds_count{outcome="timeout"}"#), "1");
    let took = counted(&world, r#"emergency_drain_duration_seconds_sum{outcome="timeout"}"#);
    assert!((59.0..=60.0).contains(&took), "{took}: status knows whole seconds");
    assert_eq!(value(&world, r#"emergency_drain_duration_seconds_count{outcome="success"}"#), "0");
    assert_eq!(value(&world, r#"node_drains_total{result="failure"}"#), "1");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_deleted_is_an_error() {
    let mut world = lent().await;
    world.faults.add(Rule {
        kind: RequestKind::Write,
        path: "/pods/stays".to_owned(),
        trigger: Trigger::Between(Timestamp::MIN, Timestamp::MAX),
        fault: Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR, None),
    });
    reclaim(&world, "a").await;
    world.phase("a", "EmergencyRemove").await;
    world.until(0, "09:05:00").await;
    assert_eq!(value(&world, r#"emergency_drain_duration_seconds_count{outcome="error"}"#), "1");
    let tried = counted(&world, r#"pod_evictions_total{result="error"}"#);
    assert!(tried >= 6.0, "an owner waits 1, 2, 4, ... s for the next attempt, not half a minute: {tried}");
    assert!(counted(&world, r#"node_drains_total{result="error"}"#) >= 1.0);
    assert!(counted(&world, r#"errors_total{error_type="KubeError"}"#) >= 1.0);
    world.end().await;
}
