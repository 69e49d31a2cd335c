//! A Lease that others change.

use crate::cluster::{Cluster, LEASE};
use crate::link::State;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again_by_its_holder() {
    let cluster = Cluster::new(1, 2, false).await;
    cluster.delete(LEASE).await;
    cluster.sleep(1.0).await;
    assert_eq!(cluster.server.holder().await, cluster.replicas[0].identity);
    assert_eq!(cluster.leader(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_label_on_the_lease_changes_nothing() {
    let cluster = Cluster::new(1, 2, false).await;
    for _ in 0..20 {
        cluster.patch(LEASE, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        cluster.sleep(1.3).await;
        assert_eq!(cluster.leader(), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_edited_stops() {
    for (change, at_most) in [
        (json!({"holderIdentity": "somebody"}), 17.0),
        (json!({"holderIdentity": ""}), 17.0),
        (json!({"holderIdentity": "other_1", "leaseDurationSeconds": 60}), 62.0),
        (json!({"holderIdentity": "other_1", "leaseDurationSeconds": 1}), 17.0),
    ] {
        let cluster = Cluster::new(1, 2, false).await;
        cluster.patch(LEASE, &json!({"spec": change})).await;
        cluster.sleep(0.01).await;
        assert_eq!(cluster.leader(), None, "{change}");
        let (_, took) = cluster.elected().await;
        assert!(took < at_most, "{change}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edited_duration_does_not_delay_the_next_leader() {
    let mut cluster = Cluster::new(1, 2, false).await;
    cluster.patch(LEASE, &json!({"spec": {"leaseDurationSeconds": 1_000_000}})).await;
    cluster.sleep(5.0).await;
    drop(cluster.replicas.remove(0));
    let (_, took) = cluster.elected().await;
    assert!(took < 17.0, "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_former_leader_reports_nothing_after_an_outage() {
    let cluster = Cluster::new(1, 2, false).await;
    cluster.replicas[0].set_link(State::Down);
    cluster.sleep(60.0).await;
    assert_eq!(cluster.leader(), Some(1));
    let remarks = cluster.replicas[0].health.remarks();
    assert!(remarks.iter().any(|remark| remark.contains("could not be written")), "{remarks:?}");
    cluster.replicas[0].set_link(State::Open);
    cluster.sleep(60.0).await;
    assert_eq!(cluster.leader(), Some(1));
    assert_eq!(cluster.replicas[0].health.remarks(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_reported_and_waited_for() {
    let cluster = Cluster::new(1, 0, false).await;
    cluster.delete("/api/v1/namespaces/5spot-system").await;
    let mut cluster = cluster;
    cluster.start("pod-0");
    cluster.sleep(10.0).await;
    assert_eq!(cluster.leader(), None);
    let replica = &cluster.replicas[0];
    assert_eq!(replica.health.obstacles(), Vec::<String>::new(), "readiness needs no leadership");
    assert!(replica.health.remarks().iter().any(|remark| remark.contains("5spot-system/5spot-leader")));
    cluster.server.api.create("/api/v1/namespaces", &json!({"metadata": {"name": "5spot-system"}}));
    let (_, took) = cluster.elected().await;
    assert!(took < 3.0, "{took}");
    assert_eq!(cluster.replicas[0].health.remarks(), Vec::<String>::new());
}
