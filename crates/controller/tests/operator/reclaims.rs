//! The ends of emergencies, by the histogram.

#![allow(clippy::float_cmp, reason = "the counts of a histogram are whole numbers")]

use crate::fixture::OperatorFixture;
use crate::recorded_run::{is_lent, machine, node, reclaim};
use five_spot_api::ReclaimStage;
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Seen, Trigger};
use five_spot_controller::metrics::Metrics;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// The `ScheduledMachine` of these tests.
const OBJECT: &str = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/a";

/// A machine that is lent, with these further fields in its spec.
async fn lent_with(further: &Value) -> OperatorFixture {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", further));
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("a to be lent", async || is_lent(&world, "a").await).await;
    world
}

/// A machine that is lent, with a pod on it that does not leave by itself.
async fn lent() -> OperatorFixture {
    let world = lent_with(&json!({})).await;
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
fn value(world: &OperatorFixture, series: &str) -> String {
    let page = world.metrics.page();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("fivespot_{series} ")));
    line.unwrap_or_else(|| panic!("{series}")).to_owned()
}

fn counted(world: &OperatorFixture, series: &str) -> f64 {
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

/// The number of measurements of each stage, and the seconds to the last of them.
fn stages(metrics: &Metrics) -> [(f64, f64); 4] {
    let page = metrics.page();
    ReclaimStage::ALL.map(|stage| {
        ["count", "sum"]
            .map(|part| {
                let series =
                    format!("fivespot_reclaim_duration_seconds_{part}{{stage=\"{}\"}} ", stage.as_str());
                let line = page.lines().find_map(|line| line.strip_prefix(&series));
                line.unwrap_or_else(|| panic!("{series}")).parse().expect("a number")
            })
            .into()
    })
}

#[tokio::test(start_paused = true)]
async fn every_stage_is_measured_once_across_restarts() {
    let mut world = lent().await;
    let requested_at = world.clock.now();
    reclaim(&world, "a").await;
    let mut runs = Vec::new();
    // While the pod stays; when the Machine is being deleted; when all is over.
    for second in [10, 61, 200] {
        let at = requested_at + SignedDuration::from_secs(second);
        tokio::time::sleep(at.duration_since(world.clock.now()).try_into().expect("still to come")).await;
        let metrics = world.metrics.clone();
        world.restart().await;
        runs.push(stages(&metrics));
    }
    let counts: Vec<[f64; 4]> = runs.iter().map(|run| run.map(|(count, _)| count)).collect();
    let total: [f64; 4] = std::array::from_fn(|stage| counts.iter().map(|run| run[stage]).sum());
    assert_eq!(total, [1.0, 0.0, 1.0, 1.0], "the pod was not seen to leave: {counts:?}");
    assert_eq!(counts[0], [1.0, 0.0, 0.0, 0.0]);
    let deleted = runs[1][2].1;
    assert!((60.0..61.0).contains(&deleted), "{deleted}: from the request on, not from the restart");
    world.until(0, "16:00:00").await;
    assert!(stages(&world.metrics).iter().all(|(count, _)| *count == 0.0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_deleted_is_an_error() {
    let mut world = lent().await;
    world.faults.add(FaultRule {
        kind: RequestKind::Write,
        path: "/pods/stays".to_owned(),
        trigger: Trigger::Between(Timestamp::MIN, Timestamp::MAX),
        fault: InjectedFault::Refuse(StatusCode::INTERNAL_SERVER_ERROR, None),
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

/// True if a request disables the schedule: it patches the object, but not its status.
fn is_disabling(seen: &Seen) -> bool {
    seen.method == http::Method::PATCH
        && seen.path.strip_prefix(OBJECT).is_some_and(|rest| !rest.starts_with('/'))
}

/// The time that each write of the object takes.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// Asks for the machine back, and returns while the request that disables the schedule is on its way.
async fn reclaim_until_disabling(world: &OperatorFixture) {
    world.faults.add(FaultRule {
        kind: RequestKind::Write,
        path: OBJECT.to_owned(),
        trigger: Trigger::Between(Timestamp::MIN, Timestamp::MAX),
        fault: InjectedFault::Delay(WRITE_TIME),
    });
    reclaim(world, "a").await;
    for _ in 0..2000 {
        if world.faults.seen().iter().any(is_disabling) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the schedule is not disabled: {}", world.status("a").await);
}

#[tokio::test(start_paused = true)]
async fn an_override_edited_before_the_disabling_stays() {
    let up = json!({"state": "up", "until": "2026-11-16T20:00:00Z", "reason": "release"});
    let mut world = lent_with(&json!({"override": up})).await;
    reclaim_until_disabling(&world).await;
    let down = json!({"state": "down", "until": "2026-11-20T00:00:00Z", "reason": "audit"});
    world.change("a", &json!({"override": down})).await;
    let is_over = async || world.status("a").await["reclaims"][0]["finishedAt"].is_string();
    world.wait("the reclaim to be over", is_over).await;
    let object = world.get(OBJECT).await.expect("the object");
    assert_eq!(object["spec"]["schedule"]["enabled"], false);
    assert_eq!(object["spec"]["override"], down);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_made_again_before_the_disabling_stays_enabled() {
    let mut world = lent_with(&json!({})).await;
    reclaim_until_disabling(&world).await;
    world.patch(OBJECT, &json!({"metadata": {"finalizers": null}})).await;
    world.delete(OBJECT).await;
    world.lend(&machine("a", &json!({})));
    tokio::time::sleep(WRITE_TIME * 3 / 2).await;
    let object = world.get(OBJECT).await.expect("the new object");
    assert_eq!(object["spec"]["schedule"]["enabled"], true);
    world.end().await;
}
