//! The brake: too many removals that were not planned are held. The tests of what is held fail when the limit is `100%`;
//! those of what is never held fail when the brake also counts that.

use crate::cluster::{Cluster, HOME};
use crate::instance::Instance;
use crate::seeds::is_campaign;
use five_spot_core::RemovalLimit;
use jiff::SignedDuration;
use serde_json::json;

const MACHINES: usize = 30;

/// A fifth of them.
const LIMIT: usize = 6;

/// All machines are lent.
async fn lent(limit: RemovalLimit) -> (Cluster, Instance) {
    let mut cluster = Cluster::new(MACHINES, "11:00");
    cluster.limit = limit;
    let instance = cluster.start(0, 1);
    cluster.until("09:30:00").await;
    assert_eq!(cluster.in_phase("Active").await, MACHINES);
    (cluster, instance)
}

async fn check_held(cluster: &Cluster, instance: &Instance, case: &str) {
    assert_eq!(cluster.held().await, MACHINES - LIMIT, "{case}");
    assert_eq!(cluster.machines().await, MACHINES - LIMIT, "{case}");
    assert_eq!(instance.metric("fivespot_removals_held"), 24.0, "{case}");
    assert_eq!(cluster.events("TooManyRemovals").await, MACHINES - LIMIT, "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_empties_no_fleet() {
    for jump in [SignedDuration::from_hours(9), SignedDuration::from_hours(-8 * 24)] {
        let (cluster, instance) = lent(RemovalLimit::default()).await;
        cluster.set_clock(jump);
        cluster.sleep(30 * 60).await;
        check_held(&cluster, &instance, &format!("{jump}")).await;
        // The clock is right again: nothing more has to go. Those that went come back when the time at which the clock was
        // wrong is over, because no boundary is crossed twice; a clock that was set back crosses none.
        cluster.set_clock(SignedDuration::ZERO);
        cluster.sleep(10 * 60).await;
        let active = if jump.is_positive() { MACHINES - LIMIT } else { MACHINES };
        assert_eq!((cluster.held().await, cluster.in_phase("Active").await), (0, active), "{jump}");
        assert_eq!(instance.metric("fivespot_removals_held"), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn time_zone_data_that_differ_empty_no_fleet() {
    let (cluster, instance) = lent(RemovalLimit::default()).await;
    instance.terminate().await;
    for number in 0..MACHINES {
        // With the data of the last version the windows would have closed an hour later.
        let status = json!({"nextCleanup": "2026-11-16T12:00:00Z"});
        cluster.change_status(&format!("m{number}"), &status).await;
    }
    cluster.until("11:01:00").await;
    let instance = cluster.start(0, 1);
    cluster.until("11:30:00").await;
    check_held(&cluster, &instance, "time zones").await;
    // By then they would have closed anyway.
    cluster.until("12:20:00").await;
    assert_eq!((cluster.held().await, cluster.in_phase("Inactive").await), (0, MACHINES));
}

#[tokio::test(start_paused = true)]
async fn a_restart_forgets_nothing_and_the_annotation_lets_go() {
    let (cluster, instance) = lent(RemovalLimit::default()).await;
    cluster.set_clock(SignedDuration::from_hours(9));
    cluster.sleep(5 * 60).await;
    check_held(&cluster, &instance, "before").await;
    instance.terminate().await;
    // This process has not seen the clock jump.
    let instance = cluster.start(0, 1);
    cluster.sleep(60).await;
    let over =
        json!({"metadata": {"annotations": {"5spot.finos.org/allow-removals": "2026-11-16T18:00:00Z"}}});
    cluster.patch(HOME, &over).await;
    cluster.sleep(60).await;
    assert_eq!(cluster.held().await, MACHINES - LIMIT, "that time is over");
    let allowed =
        json!({"metadata": {"annotations": {"5spot.finos.org/allow-removals": "2026-11-17T00:00:00Z"}}});
    cluster.patch(HOME, &allowed).await;
    cluster.sleep(10 * 60).await;
    assert_eq!((cluster.held().await, cluster.machines().await), (0, 0));
    assert_eq!(instance.metric("fivespot_removals_held"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_counts_against_the_same_share() {
    let (cluster, instance) = lent(RemovalLimit::default()).await;
    instance.terminate().await;
    for number in 0..MACHINES {
        let status = json!({"nextCleanup": "2026-11-16T12:00:00Z"});
        cluster.change_status(&format!("m{number}"), &status).await;
    }
    // One removal began before the restart.
    let begun = json!({
        "since": "2026-11-16T11:00:30Z", "begunAt": "2026-11-16T11:00:30Z", "generation": 1,
        "plannedFor": "2026-11-16T12:00:00Z",
    });
    cluster.change_status("m0", &json!({"unplannedRemoval": begun})).await;
    cluster.until("11:01:00").await;
    let _instance = cluster.start(0, 1);
    cluster.until("11:20:00").await;
    assert_eq!((cluster.held().await, cluster.machines().await), (MACHINES - LIMIT, MACHINES - LIMIT));
}

#[tokio::test(start_paused = true)]
async fn the_wish_of_a_person_is_never_held() {
    let (cluster, _instance) = lent(RemovalLimit::Count(0)).await;
    cluster.set_clock(SignedDuration::from_hours(9));
    cluster.sleep(5 * 60).await;
    assert_eq!((cluster.held().await, cluster.machines().await), (MACHINES, MACHINES));
    cluster.change("m0", &json!({"killSwitch": true})).await;
    cluster.change("m1", &json!({"schedule": {"enabled": false}})).await;
    cluster.delete("/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/m2").await;
    cluster.sleep(10 * 60).await;
    assert_eq!((cluster.held().await, cluster.machines().await), (MACHINES - 3, MACHINES - 3));
}

/// With many machines (a thousand at full size) and the default limit, and with a limit that would hold even the first.
#[tokio::test(start_paused = true)]
async fn ordinary_closings_are_never_held() {
    let many = if is_campaign() { 1_000 } else { 100 };
    for (machines, limit) in [(many, RemovalLimit::default()), (MACHINES, RemovalLimit::Count(0))] {
        let mut cluster = Cluster::new(machines, "11:00");
        cluster.limit = limit;
        let instance = cluster.start(0, 1);
        cluster.until("09:30:00").await;
        assert_eq!(cluster.in_phase("Active").await, machines);
        cluster.until("11:10:00").await;
        assert_eq!((cluster.held().await, cluster.in_phase("Inactive").await), (0, machines));
        assert_eq!(cluster.events("TooManyRemovals").await, 0);
        assert_eq!(instance.metric("fivespot_removals_held"), 0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_nothing_is_held() {
    let (cluster, _instance) = lent(RemovalLimit::Unlimited).await;
    cluster.set_clock(SignedDuration::from_hours(9));
    cluster.sleep(30 * 60).await;
    assert_eq!((cluster.held().await, cluster.machines().await), (0, 0));
}
