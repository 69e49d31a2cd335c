//! Wake-ups of the objects of one physical machine: a change wakes only those to which it matters.

use crate::fixture::OperatorFixture;
use crate::recorded_run::machine;
use serde_json::json;
use std::time::Duration;

const OBJECTS: usize = 50;

/// The number of reconciles so far, without the retries that objects with a fault have by themselves.
fn woken(world: &OperatorFixture) -> usize {
    let lines = world.log.lines();
    let starts = lines.iter().filter(|line| line["fields"]["message"] == "Starting reconciliation");
    starts.filter(|line| line["span"]["object.reason"] != "reconciler requested retry").count()
}

/// Objects of one address, none of which can be lent: there is no kubeconfig of their cluster.
#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_lent_do_not_wake_each_other() {
    let mut world = OperatorFixture::new("info");
    for number in 0..OBJECTS {
        let mut object = machine(&format!("m{number}"), &json!({"kubeconfigSecretRef": {"name": "none"}}));
        object["spec"]["infrastructureSpec"]["spec"]["address"] = json!("one.example.org");
        world.lend(&object);
    }
    world.begin();
    world.until(0, "09:10:00").await;
    assert_eq!(world.status("m7").await["phase"], "Error");
    let before = woken(&world);
    for number in 0..OBJECTS {
        world.change(&format!("m{number}"), &json!({"priority": 60})).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(woken(&world) - before, OBJECTS, "one for each change");
    world.end().await;
}
