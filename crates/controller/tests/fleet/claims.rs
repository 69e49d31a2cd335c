//! Objects on different shards that name one physical machine.

use crate::cluster::Cluster;
use crate::instance::{Answered, Instance};
use five_spot_core::shard::owner;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::Duration;

const ADDRESS: &str = "desk.example.org";

/// A name in a namespace that the instance `id` of two owns.
fn name_on(id: u32, namespace: &str) -> String {
    let two = NonZeroU32::new(2).expect("not zero");
    let mut names = (0..).map(|number| format!("desk-{number}"));
    names.find(|name| owner(namespace, name, two) == id).expect("half of all names")
}

fn key(object: &Value) -> String {
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", part("namespace"), part("name"))
}

/// The objects that have the machine, and those that wait for one that has it. Fails if an object is in between.
async fn winners(cluster: &Cluster) -> (Vec<String>, Vec<String>) {
    let (mut active, mut waiting) = (Vec::new(), Vec::new());
    for object in cluster.all_objects().await {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let is_waiting = ready.is_some_and(|ready| ready["reason"] == "MachineInUse");
        match object["status"]["phase"].as_str().unwrap_or_default() {
            "Active" => active.push(key(&object)),
            "Pending" if is_waiting => {
                let message = object["status"]["message"].as_str().unwrap_or_default();
                waiting.push(format!("{} {message}", key(&object)));
            }
            "Inactive" => {}
            phase => panic!("{} is {phase}: {object:#}", key(&object)),
        }
    }
    (active, waiting)
}

/// The number of claims that were created. Each of the two instances has created its own Lease as well.
fn claims_created(cluster: &Cluster) -> usize {
    let creates_lease = |request: &&Answered| {
        request.method == Method::POST && request.path.contains("/leases") && request.code == 201
    };
    cluster.answered().iter().filter(creates_lease).count() - 2
}

/// Lets time pass until a time of the day, and checks four times a second that there is at most one Machine.
async fn until(cluster: &Cluster, time: &str) {
    let at: Timestamp = format!("2026-11-16T{time}Z").parse().expect("an instant");
    while cluster.shared.clock.now() < at {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let machines = cluster.all_machines().await;
        assert!(machines.len() <= 1, "{:?} at a time", machines.iter().map(key).collect::<Vec<_>>());
    }
}

fn two_instances(cluster: &Cluster) -> [Instance; 2] {
    [cluster.start(0, 2), cluster.start(1, 2)]
}

#[tokio::test(start_paused = true)]
async fn one_of_two_shards_gets_the_machine() {
    // Either of them may be faster.
    for first in [0, 1] {
        let cluster = Cluster::new(0, "");
        let names = [name_on(0, "shop"), name_on(1, "shop")];
        cluster.create_at(("shop", &names[first]), ADDRESS, "09:03", 50);
        cluster.create_at(("shop", &names[1 - first]), ADDRESS, "09:03", 50);
        let _instances = two_instances(&cluster);
        until(&cluster, "08:59:50").await;
        assert_eq!(winners(&cluster).await, (vec![], vec![]), "their windows are closed");
        until(&cluster, "09:02:00").await;
        let (active, waiting) = winners(&cluster).await;
        assert_eq!((active.len(), waiting.len()), (1, 1), "{active:?} {waiting:?}");
        assert!(waiting[0].contains(&format!("ScheduledMachine {} uses", active[0])), "{waiting:?}");
        assert_eq!((claims_created(&cluster), cluster.all_machines().await.len()), (1, 1));
        // The holder closes, and the other one stays open.
        let [holder, other] = [&active[0], waiting[0].split(' ').next().expect("a name")];
        let change = json!({"schedule": {"windows": [{"from": "mon 09:00", "to": "mon 09:06"}]}});
        cluster.change(other.trim_start_matches("shop/"), &change).await;
        until(&cluster, "09:05:00").await;
        assert_eq!(winners(&cluster).await, (vec![other.to_owned()], vec![]), "after {holder}");
        assert_eq!((claims_created(&cluster), cluster.all_machines().await.len()), (2, 1));
        until(&cluster, "09:08:00").await;
        assert_eq!((winners(&cluster).await, cluster.all_machines().await.len()), ((vec![], vec![]), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn age_decides_between_namespaces_and_shards() {
    for older in [0, 1] {
        let cluster = Cluster::new(0, "");
        cluster.create_namespace("bank");
        let holder = name_on(older, "shop");
        cluster.create_at(("shop", &holder), ADDRESS, "09:04", 50);
        let [old, young] = [name_on(older, "bank"), name_on(1 - older, "shop")];
        let _instances = two_instances(&cluster);
        until(&cluster, "09:01:00").await;
        cluster.create_at(("bank", &old), ADDRESS, "09:07", 1);
        until(&cluster, "09:01:30").await;
        cluster.create_at(("shop", &young), ADDRESS, "09:10", 100);
        until(&cluster, "09:03:00").await;
        let (active, waiting) = winners(&cluster).await;
        assert_eq!((active, waiting.len()), (vec![format!("shop/{holder}")], 2), "{waiting:?}");
        until(&cluster, "09:06:00").await;
        let (active, waiting) = winners(&cluster).await;
        assert_eq!(active, [format!("bank/{old}")], "the priority of another namespace does not count");
        assert!(waiting[0].starts_with(&format!("shop/{young} ")), "{waiting:?}");
        until(&cluster, "09:09:00").await;
        assert_eq!(winners(&cluster).await, (vec![format!("shop/{young}")], vec![]));
        assert_eq!((claims_created(&cluster), cluster.all_machines().await.len()), (3, 1));
    }
}
