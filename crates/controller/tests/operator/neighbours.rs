//! A tenant that names more than it should: others are not affected, and what it has already keeps working.

use crate::fixture::{Asked, OperatorFixture, kubeconfig};
use crate::recorded_run::{is_lent, machine, node};
use serde_json::{Value, json};
use std::time::Duration;

/// The workload clusters of one namespace that the controller connects to.
const CLUSTERS: usize = 100;

fn create_secret(world: &OperatorFixture, name: &str, keys: &[&str]) {
    let values: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), kubeconfig().into())).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, "stringData": values,
    });
    world.create("/api/v1/namespaces/shop/secrets", &secret);
}

/// A machine whose Node is in a cluster of its own.
fn elsewhere(world: &OperatorFixture, name: &str, further: &Value) -> Value {
    create_secret(world, name, &["value"]);
    let mut object = machine(name, &json!({"kubeconfigSecretRef": {"name": name, "key": "value"}}));
    for (field, value) in further.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// The objects with this value of `ReferencesValid`, and the message of one of them.
async fn with_references(world: &OperatorFixture, status: &str, reason: &str) -> (Vec<String>, String) {
    let (mut names, mut message) = (Vec::new(), String::new());
    for object in world.machines().await {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|one| one["type"] == "ReferencesValid");
        if let Some(found) = found.filter(|one| one["status"] == status && one["reason"] == reason) {
            names.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            found["message"].as_str().unwrap_or_default().clone_into(&mut message);
        }
    }
    (names, message)
}

async fn all_lent(world: &OperatorFixture, names: &[String]) -> bool {
    let mut all = true;
    for name in names {
        all &= is_lent(world, name).await;
    }
    all
}

/// The reconciles of an object so far, by the log.
fn reconciles(world: &OperatorFixture, name: &str) -> usize {
    let begins = |line: &&Value| line["fields"]["message"] == "Starting reconciliation";
    world.log.lines().iter().filter(begins).filter(|line| line["fields"]["resource"] == name).count()
}

async fn until_refused(world: &OperatorFixture, refused: usize) {
    let what = format!("{refused} objects to be refused");
    world.wait(&what, async || with_references(world, "False", "NotAllowed").await.0.len() == refused).await;
}

#[tokio::test(start_paused = true)]
async fn more_clusters_than_one_namespace_may_have_are_refused() {
    let (lent, excess) = (2, 5);
    let mut world = OperatorFixture::new("info");
    world.concurrency = 4;
    // The last ones by name, so that a restart comes to them last.
    let lent: Vec<String> = (0..lent).map(|number| format!("z{number}")).collect();
    for name in &lent {
        world.lend(&elsewhere(&world, name, &json!({})));
    }
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("the first to be lent", async || all_lent(&world, &lent).await).await;
    let idle = json!({"schedule": {"daysOfWeek": ["sun"], "hoursOfDay": ["3"]}});
    for number in 0..CLUSTERS - lent.len() + excess {
        world.lend(&elsewhere(&world, &format!("m{number:03}"), &idle));
    }
    until_refused(&world, excess).await;
    let (refused, message) = with_references(&world, "False", "NotAllowed").await;
    assert!(message.contains("100 workload clusters") && message.contains("another namespace"), "{message}");
    let lent_refused = |refused: &[String]| refused.iter().any(|name| name.starts_with('z'));
    assert!(!lent_refused(&refused), "{refused:?}");

    // A changed kubeconfig takes the place of the old one.
    let path = "/api/v1/namespaces/shop/secrets/z0";
    world.patch(path, &json!({"stringData": {"value": format!("{}\n", kubeconfig())}})).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(all_lent(&world, &lent).await);

    // Those that are lent come first after a restart, too.
    world.restart().await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let (refused, _) = with_references(&world, "False", "NotAllowed").await;
    assert_eq!((refused.len(), lent_refused(&refused)), (excess, false), "{refused:?}");
    assert!(all_lent(&world, &lent).await);
    world.change("z1", &json!({"killSwitch": true})).await;
    world.phase("z1", "Terminated").await;

    // Others get their places when they go.
    let accepted = (0..).map(|number| format!("m{number:03}")).filter(|name| !refused.contains(name));
    for name in accepted.take(excess) {
        world.remove(&name).await;
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (refused, _) = with_references(&world, "False", "NotAllowed").await;
    assert!(refused.is_empty(), "{refused:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_named_no_more_costs_no_link() {
    let mut world = OperatorFixture::new("info");
    let keys = ["a", "b", "c", "d", "e", "f"];
    create_secret(&world, "many", &keys);
    world.lend(&machine("m0", &json!({"kubeconfigSecretRef": {"name": "many", "key": "value"}})));
    world.begin();
    for key in keys {
        world.change("m0", &json!({"kubeconfigSecretRef": {"name": "many", "key": key}})).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    let from = world.clock.now();
    // Every watch is restarted once an hour.
    tokio::time::sleep(Duration::from_hours(1)).await;
    let of_nodes =
        |asked: &&Asked| asked.uri.starts_with("/api/v1/nodes?") && asked.uri.contains("watch=true");
    let afresh = |asked: &&Asked| asked.uri.contains("sendInitialEvents=true");
    let begun = world.asked_since(from).iter().filter(of_nodes).filter(afresh).count();
    assert_eq!(begun, 1, "one link is needed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn missing_kinds_wake_only_their_users_and_share_discovery() {
    let mut world = OperatorFixture::new("info");
    world.concurrency = 4;
    world.lend(&machine("neighbour", &json!({})));
    world.begin();
    world.until(0, "08:10:00").await;
    let before = world.clock.now();
    let undisturbed = reconciles(&world, "neighbour");
    let count = 60;
    for number in 0..count {
        let kind = json!({
            "apiVersion": format!("infrastructure.cluster.x-k8s.io/v{}", number + 100),
            "kind": format!("Missing{number}"), "spec": {},
        });
        world.lend(&machine(&format!("m{number}"), &json!({"infrastructureSpec": kind})));
    }
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(undisturbed > 0, "the log shows it");
    assert_eq!(reconciles(&world, "neighbour"), undisturbed, "they are no concern of others");
    let is_discovery = |asked: &&Asked| !asked.uri.contains("/namespaces") && !asked.uri.contains('?');
    let asked = world.asked_since(before);
    let asked: Vec<&str> = asked.iter().filter(is_discovery).map(|asked| &*asked.uri).collect();
    assert!(asked.len() < 200, "{} requests for {count} kinds: {:?}", asked.len(), &asked[..20]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_keeps_changing_causes_one_reconcile_a_second() {
    let mut world = OperatorFixture::new("info");
    world.lend(&machine("m0", &json!({})));
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("m0 to be lent", async || is_lent(&world, "m0").await).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let before = reconciles(&world, "m0");
    let path = format!("/api/v1/nodes/{}", node("m0"));
    for number in 0..1000 {
        let annotations = json!({"5spot.finos.org/reclaim-requested": format!("no {number}")});
        world.patch(&path, &json!({"metadata": {"annotations": annotations}})).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let during = reconciles(&world, "m0") - before;
    assert!((10..200).contains(&during), "{during} reconciles in 10 s");
    // Changes in the management cluster do not wait.
    let from = world.clock.now();
    world.change("m0", &json!({"killSwitch": true})).await;
    world.phase("m0", "Terminated").await;
    let is_delete = |asked: &&Asked| asked.uri.contains("/machines/m0-machine") && asked.method == "DELETE";
    let deleted = world.asked_since(from).iter().find(is_delete).map(|asked| asked.at);
    let took = deleted.expect("the Machine was deleted").duration_since(from);
    assert!(took.as_secs() < 1, "{took}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_in_a_loop_hurts_no_neighbour() {
    let (objects, changes) = (50, 200);
    let mut world = OperatorFixture::new("info");
    world.concurrency = 4;
    world.lend(&machine("neighbour", &json!({})));
    create_secret(&world, "many", &["value"]);
    for number in 0..objects {
        let kubeconfig = json!({"kubeconfigSecretRef": {"name": "many", "key": "value"}});
        world.lend(&machine(&format!("m{number:02}"), &kubeconfig));
    }
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("the neighbour to be lent", async || is_lent(&world, "neighbour").await).await;
    tokio::time::sleep(Duration::from_mins(5)).await;

    let all = || -> usize { (0..objects).map(|number| reconciles(&world, &format!("m{number:02}"))).sum() };
    let (before, lines, from) = (all(), world.log.lines().len(), world.clock.now());
    let path = "/api/v1/namespaces/shop/secrets/many";
    for number in 0..changes {
        let text = format!("{}# {number}\n", kubeconfig());
        world.patch(path, &json!({"stringData": {"value": text}})).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (during, lines) = (all() - before, world.log.lines().len() - lines);
    let is_read = |asked: &&Asked| asked.uri.contains("/secrets?") && asked.uri.contains("metadata.name");
    let reads = world.asked_since(from).iter().filter(is_read).count();
    println!("{changes} changes: {reads} reads, {during} reconciles of {objects} objects, {lines} lines");
    assert!((10..=25).contains(&reads), "{reads} reads");
    assert!((objects..=objects * 2 * 25).contains(&during), "{during} reconciles");
    assert!(lines <= during * 12, "{lines} lines of {during} reconciles");

    let from = world.clock.now();
    world.patch(path, &json!({"stringData": {"value": format!("{}# again\n", kubeconfig())}})).await;
    world.change("neighbour", &json!({"killSwitch": true})).await;
    world.phase("neighbour", "Terminated").await;
    let is_delete =
        |asked: &&Asked| asked.uri.contains("/machines/neighbour-machine") && asked.method == "DELETE";
    let deleted = world.asked_since(from).iter().find(is_delete).map(|asked| asked.at);
    let took = deleted.expect("the Machine was deleted").duration_since(from);
    assert!(took.as_secs() < 1, "{took}");

    // The last content is read.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(with_references(&world, "False", "NotAllowed").await.0.is_empty());
    world.end().await;
}
