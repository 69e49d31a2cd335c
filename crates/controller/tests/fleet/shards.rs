//! Several instances that share the objects.

use crate::cluster::Cluster;
use crate::instance::Instance;
use http::Method;
use serde_json::json;
use std::sync::atomic::Ordering;

const MACHINES: usize = 12;
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";

/// The numbers that instances export together.
fn total(instances: &[&Instance], series: &str) -> f64 {
    instances.iter().map(|instance| instance.metric(series)).sum()
}

#[tokio::test(start_paused = true)]
async fn two_and_three_instances_share_the_objects() {
    for count in [2, 3] {
        let cluster = Cluster::new(MACHINES, "09:30");
        let instances: Vec<Instance> = (0..count).map(|id| cluster.start(id, count)).collect();
        cluster.until("09:10:00").await;
        let instances: Vec<&Instance> = instances.iter().collect();
        assert_eq!(cluster.in_phase("Active").await, MACHINES);
        cluster.check_turns(MACHINES, 1);
        let owned = r#"fivespot_shard_objects{state="owned"}"#;
        let foreign = r#"fivespot_shard_objects{state="foreign"}"#;
        for series in [owned, "fivespot_machines_active"] {
            assert_eq!(total(&instances, series), 12.0, "{series}");
        }
        assert_eq!(total(&instances, foreign), 12.0 * f64::from(count - 1));
        for instance in &instances {
            assert!(instance.owned() > 0.0);
            assert_eq!(instance.owned(), instance.metric("fivespot_machines_active"));
            assert_eq!(instance.metric("fivespot_instances"), f64::from(count));
            assert_eq!(instance.health.obstacles(), Vec::<String>::new());
        }
        cluster.until("09:40:00").await;
        assert_eq!((cluster.in_phase("Inactive").await, cluster.machines().await), (MACHINES, 0));
        cluster.check_turns(MACHINES, 1);
    }
}

/// Starts the new instances, and replaces the others from the highest number to the lowest, as a `StatefulSet` does.
async fn roll_out(cluster: &Cluster, mut instances: Vec<Instance>, count: u32) -> Vec<Instance> {
    while instances.len() > count as usize {
        instances.pop().expect("it is there").terminate().await;
    }
    let before = instances.len();
    for id in u32::try_from(before).expect("few")..count {
        instances.push(cluster.start(id, count));
        cluster.sleep(3).await;
    }
    for id in (0..before).rev() {
        instances.remove(id).terminate().await;
        cluster.sleep(2).await;
        instances.insert(id, cluster.start(u32::try_from(id).expect("few"), count));
        cluster.sleep(5).await;
    }
    instances
}

#[tokio::test(start_paused = true)]
async fn a_rollout_to_three_and_back_touches_no_lent_machine() {
    let cluster = Cluster::new(MACHINES, "09:30");
    let mut instances = vec![cluster.start(0, 1)];
    cluster.until("09:10:00").await;
    assert_eq!(cluster.in_phase("Active").await, MACHINES);
    for count in [3, 1] {
        instances = roll_out(&cluster, instances, count).await;
        cluster.sleep(60).await;
        let all: Vec<&Instance> = instances.iter().collect();
        assert_eq!(total(&all, r#"fivespot_shard_objects{state="owned"}"#), 12.0, "{count}");
        assert_eq!(total(&all, r#"fivespot_shard_objects{state="waiting"}"#), 0.0, "{count}");
        // An edit reaches the one who owns the object now.
        for number in 0..MACHINES {
            let labels = json!({"machineTemplate": {"labels": {"rollout": count.to_string()}}});
            cluster.change(&format!("m{number}"), &labels).await;
        }
        cluster.sleep(60).await;
        assert_eq!((cluster.in_phase("Active").await, cluster.machines().await), (MACHINES, MACHINES));
    }
    // The first process, one of three, and the last one.
    cluster.check_turns(MACHINES, 3);
    let deleted = |request: &&crate::instance::Answered| request.method == Method::DELETE;
    assert_eq!(cluster.answered().iter().filter(deleted).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_process_of_one_instance_stands_by() {
    let cluster = Cluster::new(MACHINES, "09:30");
    let first = cluster.start(0, 1);
    cluster.sleep(5).await;
    let second = cluster.start(0, 1);
    cluster.until("09:10:00").await;
    assert!(first.works() && !second.works());
    assert_eq!(second.metric("fivespot_machines_active"), 0.0);
    assert_eq!(second.health.obstacles(), Vec::<String>::new(), "a role is no reason to be not ready");
    let remarks = second.health.remarks();
    assert!(remarks.iter().any(|remark| remark.contains("5spot-leader-instance-0")), "{remarks:?}");
    first.terminate().await;
    cluster.sleep(1).await;
    assert!(second.works(), "the Lease was released");
    assert_eq!(second.owned(), 12.0);
    cluster.check_turns(MACHINES, 2);
}

#[tokio::test(start_paused = true)]
async fn a_killed_instance_is_replaced_after_its_lease() {
    let cluster = Cluster::new(MACHINES, "09:30");
    drop(cluster.start(0, 1));
    let first = cluster.start(0, 1);
    cluster.sleep(5).await;
    assert!(first.works());
    drop(first);
    let second = cluster.start(0, 1);
    cluster.sleep(15).await;
    assert!(!second.works(), "the Lease of the first one has not expired");
    cluster.sleep(20).await;
    assert!(second.works());
}

#[tokio::test(start_paused = true)]
async fn a_former_leader_of_a_shard_is_ready_after_an_outage() {
    let cluster = Cluster::new(MACHINES, "09:30");
    let one = cluster.start_replica(0, 2);
    cluster.sleep(5).await;
    let other = cluster.start_replica(0, 2);
    cluster.sleep(5).await;
    assert!(one.works() && !other.works());
    one.cut_off(true);
    cluster.sleep(60).await;
    assert!(!one.works() && other.works());
    one.cut_off(false);
    cluster.sleep(120).await;
    assert!(!one.works() && other.works());
    for replica in [&one, &other] {
        assert_eq!(replica.health.obstacles(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn without_permission_for_leases_only_a_single_instance_works() {
    let cluster = Cluster::new(MACHINES, "09:30");
    cluster.shared.refuses_leases.store(true, Ordering::SeqCst);
    let alone = cluster.start(0, 1);
    cluster.until("09:10:00").await;
    assert_eq!(cluster.in_phase("Active").await, MACHINES);
    assert_eq!(alone.health.obstacles(), Vec::<String>::new());
    let remarks = alone.health.remarks();
    assert!(remarks.iter().any(|remark| remark.contains("is forbidden")), "{remarks:?}");
    alone.terminate().await;
    let one_of_two = cluster.start(0, 2);
    cluster.sleep(60).await;
    assert!(!one_of_two.works());
    let obstacles = one_of_two.health.obstacles();
    assert!(obstacles.iter().any(|obstacle| obstacle.contains("5spot-leader-instance-0")), "{obstacles:?}");
    cluster.shared.refuses_leases.store(false, Ordering::SeqCst);
    cluster.sleep(90).await;
    assert!(one_of_two.works());
    assert_eq!(one_of_two.health.obstacles(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_idle_instance_renews_its_lease_and_asks_for_nothing_else() {
    for (id, count, renewals) in [(0, 1, 60), (1, 2, 120)] {
        let cluster = Cluster::new(MACHINES, "09:30");
        let instance = cluster.start(id, count);
        cluster.until("09:05:00").await;
        let before = cluster.answered().len();
        cluster.sleep(600).await;
        let requests = cluster.answered().split_off(before);
        let own = format!("{LEASES}/5spot-leader-instance-{id}");
        let (own, others): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .partition(|request| request.method == Method::PATCH && request.path.starts_with(&own));
        assert!(own.len().abs_diff(renewals) <= 1, "{} renewals", own.len());
        // A server ends a watch from time to time, which is opened again.
        let others: Vec<_> = others.iter().filter(|request| !request.path.contains("watch=true")).collect();
        assert!(others.is_empty(), "{others:#?}");
        drop(instance);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_or_edited_doubles_nothing() {
    let own = format!("{LEASES}/5spot-leader-instance-0");
    let count = json!({"metadata": {"labels": {"5spot.finos.org/instance-count": "many"}}});
    let unlabelled = json!({"metadata": {"labels": null}});
    let yields = json!({"metadata": {"annotations": {"5spot.finos.org/yields-to": "x".repeat(10_000)}}});
    for change in [None, Some(count), Some(unlabelled), Some(yields)] {
        let cluster = Cluster::new(MACHINES, "09:30");
        let instances = [cluster.start(0, 2), cluster.start(1, 2)];
        cluster.until("09:10:00").await;
        match &change {
            None => cluster.delete(&own).await,
            Some(change) => cluster.patch(&own, change).await,
        }
        cluster.sleep(60).await;
        for instance in &instances {
            assert!(instance.works(), "{change:?}");
        }
        let leases = cluster.leases().await;
        assert_eq!(leases.len(), 2);
        for lease in &leases {
            assert_eq!(lease["metadata"]["labels"]["5spot.finos.org/instance-count"], "2", "{change:?}");
            assert_eq!(
                lease["metadata"]["labels"]["5spot.finos.org/instance-of"], "5spot-leader",
                "{change:?}"
            );
        }
        cluster.until("09:40:00").await;
        assert_eq!(cluster.in_phase("Inactive").await, MACHINES, "{change:?}");
        cluster.check_turns(MACHINES, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn counts_that_differ_for_good_are_shown_and_double_nothing() {
    let cluster = Cluster::new(MACHINES, "09:30");
    let one = cluster.start(0, 1);
    cluster.sleep(20).await;
    let two = cluster.start(1, 2);
    cluster.until("09:10:00").await;
    let all = [&one, &two];
    assert_eq!(total(&all, r#"fivespot_shard_objects{state="owned"}"#), 12.0);
    assert!(one.metric(r#"fivespot_shard_objects{state="waiting"}"#) > 0.0, "the other one takes precedence");
    assert_ne!(one.metric("fivespot_instances"), two.metric("fivespot_instances"));
    let leases = cluster.leases().await;
    let yields = &leases[0]["metadata"]["annotations"]["5spot.finos.org/yields-to"];
    assert_eq!(yields, "1/2");
    assert_eq!(cluster.in_phase("Active").await, MACHINES);
    cluster.check_turns(MACHINES, 2);
    // The other one is gone: the first takes everything back.
    two.terminate().await;
    cluster.sleep(30).await;
    assert_eq!(one.owned(), 12.0);
}
