//! The requests of an idle cluster, which are the same in two runs.

use crate::fixture::StandInFixture;
use serde_json::json;
use std::time::Duration;

const WEEK: Duration = Duration::from_hours(7 * 24);

#[tokio::test(start_paused = true)]
async fn a_quiet_week_costs_only_heartbeats() {
    let world = StandInFixture::new();
    let node = world.running("m", &json!({}), &json!({})).await;
    world.running_pod(&node, "web").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let requests = world.requests.seen().len();
    let (writes, revision) = (world.writes().len(), world.api.revision());
    tokio::time::sleep(WEEK).await;
    let made: Vec<String> = world.writes().split_off(writes);
    let others: Vec<&String> = made.iter().filter(|write| !write.contains("leases")).collect();
    assert!(others.is_empty(), "{others:#?}");
    // One per hour.
    assert_eq!(made.len(), 168);
    assert_eq!(world.api.revision() - revision, 168);
    let watches = world.requests.seen().len() - requests - made.len();
    assert!(watches < 300, "each watch restarts once a day: {watches}");
}

#[tokio::test(start_paused = true)]
async fn two_runs_write_the_same_in_the_same_order() {
    assert_eq!(eventful_day().await, eventful_day().await);
}

async fn eventful_day() -> Vec<String> {
    let world = StandInFixture::new();
    for name in ["m", "mm", "mmm"] {
        world.machine(name, &json!({}), &json!({}));
    }
    tokio::time::sleep(Duration::from_mins(5)).await;
    for node in world.list("Node").await {
        let node = node["metadata"]["name"].as_str().expect("a name").to_owned();
        for pod in ["a", "b"] {
            world.pod(&node, &format!("{pod}-{node}"), &json!({}));
        }
    }
    tokio::time::sleep(Duration::from_mins(5)).await;
    world.delete("Machine", "mm").await;
    world.delete("Machine", "m").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let writes = world.writes();
    assert!(writes.len() > 60, "{writes:#?}");
    writes
}
