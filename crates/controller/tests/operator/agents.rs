//! The reclaim agents on lent nodes: counted by their state, without a request while nothing happens.

use crate::fixture::OperatorFixture;
use crate::recorded_run::{is_lent, machine, node};
use serde_json::json;
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/5spot-system/pods";

/// The number of agents that are ready, not ready and missing.
fn agents(world: &OperatorFixture) -> [String; 3] {
    let page = world.metrics.page();
    ["ready", "not_ready", "missing"].map(|state| {
        let series = format!("fivespot_agents{{state=\"{state}\"}} ");
        page.lines()
            .find_map(|line| line.strip_prefix(&series))
            .unwrap_or_else(|| panic!("{series}"))
            .to_owned()
    })
}

/// A pod of the DaemonSet on the Node of a machine, which is not Ready yet.
fn start_agent(world: &OperatorFixture, machine: &str) {
    world.create(
        PODS,
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("agent-{machine}"), "namespace": "5spot-system", "labels": {"app": "5spot-reclaim-agent"}},
            "spec": {"nodeName": node(machine), "containers": [{"name": "agent", "image": "5spot-reclaim-agent"}]},
        }),
    );
}

async fn set_ready(world: &OperatorFixture, machine: &str, ready: bool) {
    let status = if ready { "True" } else { "False" };
    let condition = json!({"type": "Ready", "status": status});
    let path = format!("{PODS}/agent-{machine}/status");
    world.patch(&path, &json!({"status": {"conditions": [condition]}})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// The watches of agents' pods that were opened.
fn watches(world: &OperatorFixture) -> usize {
    let asked = world.asked_since(jiff::Timestamp::MIN);
    asked.iter().filter(|asked| asked.uri.starts_with(PODS) && asked.uri.contains("watch=true")).count()
}

#[tokio::test(start_paused = true)]
async fn agents_are_counted_by_their_state() {
    let mut world = OperatorFixture::new("off");
    for name in ["a", "b"] {
        world.lend(&machine(name, &json!({"killIfCommands": ["java"]})));
    }
    world.lend(&machine("c", &json!({})));
    world.begin();
    world.until(0, "08:30:00").await;
    assert_eq!((agents(&world), watches(&world)), (["0", "0", "0"].map(str::to_owned), 0), "no node yet");
    world.until(0, "09:00:01").await;
    for name in ["a", "b", "c"] {
        world.wait("it to be lent", async || is_lent(&world, name).await).await;
    }
    assert_eq!(agents(&world), ["0", "0", "2"], "nobody looks for programs on c");
    start_agent(&world, "a");
    set_ready(&world, "a", false).await;
    assert_eq!(agents(&world), ["0", "1", "1"]);
    set_ready(&world, "a", true).await;
    assert_eq!(agents(&world), ["1", "0", "1"]);

    // Heartbeats of pods and scrapes cost nothing, and neither does a state that changes.
    world.until(0, "10:00:00").await;
    let since = world.clock.now();
    set_ready(&world, "a", false).await;
    set_ready(&world, "a", true).await;
    world.until(0, "10:04:00").await;
    assert_eq!(agents(&world), ["1", "0", "1"]);
    let asked: Vec<String> = world
        .asked_since(since)
        .into_iter()
        .filter(|asked| !asked.uri.contains("watch=true"))
        .map(|asked| format!("{} {}", asked.method, asked.uri))
        .collect();
    assert_eq!(asked, Vec::<String>::new());

    world.delete(&format!("{PODS}/agent-a?gracePeriodSeconds=0")).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(agents(&world), ["0", "0", "2"]);
    world.until(0, "18:00:00").await;
    assert_eq!(agents(&world), ["0", "0", "0"], "the nodes have left");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn agents_are_watched_only_while_a_node_needs_one() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({})));
    world.begin();
    world.until(0, "09:00:01").await;
    world.wait("it to be lent", async || is_lent(&world, "a").await).await;
    world.until(0, "10:00:00").await;
    assert_eq!(watches(&world), 0);
    world.change("a", &json!({"killIfCommands": ["java"]})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((agents(&world), watches(&world)), (["0", "0", "1"].map(str::to_owned), 1));
    world.change("a", &json!({"killIfCommands": []})).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(agents(&world), ["0", "0", "0"]);
    let opened = watches(&world);
    world.until(0, "12:00:00").await;
    assert_eq!(watches(&world), opened, "the watch is closed");
    world.end().await;
}
