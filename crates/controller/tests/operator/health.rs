//! Health of a controller that runs: what turns it, and what does not.

use crate::fixture::OperatorFixture;
use crate::recorded_run::machine;
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger, WatchFault};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;
use std::time::Duration;

fn always() -> Trigger {
    Trigger::Between(Timestamp::MIN, Timestamp::MAX)
}

/// A watch that is opened like any other, and then not a word.
fn hanging_watch(trigger: Trigger) -> FaultRule {
    let fault = InjectedFault::Watch(WatchFault::HangBefore(0));
    FaultRule { kind: RequestKind::Watch, path: "/scheduledmachines".to_owned(), trigger, fault }
}

#[tokio::test(start_paused = true)]
async fn a_day_of_ordinary_work_turns_neither() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({})));
    world.begin();
    assert_eq!(world.health.obstacles(), ["the controller has not opened its watches"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    for _ in 0..24 * 60 {
        assert_eq!(world.health.obstacles(), [""; 0]);
        // Not in step with anything.
        tokio::time::sleep(Duration::from_millis(60_007)).await;
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_turns_only_readiness_and_back() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({})));
    world.begin();
    tokio::time::sleep(Duration::from_secs(5)).await;
    for fault in [
        InjectedFault::DropBefore,
        InjectedFault::Hang,
        InjectedFault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None),
    ] {
        for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Watch] {
            world.faults.add(FaultRule {
                kind,
                path: String::new(),
                trigger: always(),
                fault: fault.clone(),
            });
        }
        // Watches that are open stay so until the server ends them, or the transport does.
        world.wait("the watches to be lost", async || !world.health.obstacles().is_empty()).await;
        for _ in 0..60 {
            assert_eq!(world.health.liveness_failures(), [""; 0], "{fault:?}");
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        let obstacles = world.health.obstacles();
        for what in ["scheduledmachines", "machines", "clusters", "namespaces"] {
            assert!(
                obstacles.contains(&format!("the watch of {what} is not connected")),
                "{fault:?}: {obstacles:?}"
            );
        }
        world.faults.clear();
        world.wait("the watches to be back", async || world.health.obstacles().is_empty()).await;
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_or_forbidden_is_named_until_it_is_not() {
    let mut world = OperatorFixture::new("warn");
    world.faults.add(FaultRule {
        kind: RequestKind::Read,
        path: "/scheduledmachines".to_owned(),
        trigger: always(),
        fault: InjectedFault::Refuse(StatusCode::FORBIDDEN, None),
    });
    world.faults.add(FaultRule {
        kind: RequestKind::Read,
        path: "/apis/cluster.x-k8s.io".to_owned(),
        trigger: always(),
        fault: InjectedFault::Refuse(StatusCode::NOT_FOUND, None),
    });
    world.begin();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let obstacles = world.health.obstacles().join("\n");
    for part in [
        "scheduledmachines are not synced: ",
        "machines are not synced: ",
        "clusters are not synced: ",
        "403",
    ] {
        assert!(obstacles.contains(part), "{part} in {obstacles}");
    }
    assert_eq!(world.health.liveness_failures(), [""; 0]);
    let lines = world.log.lines();
    let failed: Vec<_> =
        lines.iter().filter(|line| line["fields"]["message"] == "Watch failed; retrying").collect();
    let path = "/apis/5spot.finos.org/v1alpha1/scheduledmachines";
    assert!(failed.iter().any(|line| line["fields"]["watch"] == path), "{failed:?}");
    // Ten minutes: after 1, 2, 4, 8, 16 and then every 20 s.
    assert!(failed.len() <= 34, "a refusal costs little: {}", failed.len());
    world.faults.clear();
    world.wait("everything to be synced", async || world.health.obstacles().is_empty()).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_workload_cluster_turns_neither() {
    let mut world = OperatorFixture::new("off");
    // Nothing leads to the cluster of this machine's node.
    world.lend(&machine("a", &json!({"kubeconfigSecretRef": {"name": "none"}})));
    world.begin();
    world.until(0, "09:30:00").await;
    assert_eq!(world.status("a").await["phase"], "Error");
    assert_eq!(world.health.obstacles(), [""; 0]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_keeps_hanging_turns_health_and_back() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({})));
    world.faults.add(hanging_watch(always()));
    world.begin();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.health.obstacles(), [""; 0], "it is listed, and its watch is open");
    tokio::time::sleep(Duration::from_mins(5)).await;
    let liveness_failures = world.health.liveness_failures();
    let hangs = "the watch of scheduledmachines has shown no activity for 3";
    assert!(liveness_failures.len() == 1 && liveness_failures[0].starts_with(hangs), "{liveness_failures:?}");
    world.faults.clear();
    // The transport gives up the one that is open after three minutes, and a server speaks at least once a minute.
    tokio::time::sleep(Duration::from_mins(4)).await;
    assert_eq!(world.health.obstacles(), [""; 0]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_once_is_reopened_in_time() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({})));
    world.faults.add(hanging_watch(Trigger::Nth(0)));
    world.begin();
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.change("a", &json!({"killSwitch": true})).await;
    for _ in 0..60 {
        assert_eq!(world.health.liveness_failures(), [""; 0]);
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(world.status("a").await["phase"], "Terminated", "the news was not lost");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_ever_turns_health_and_back() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("a", &json!({"kubeconfigSecretRef": {"name": "shop-kubeconfig"}})));
    let held = world.way.clone().lock_owned().await;
    world.begin();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.health.obstacles(), [""; 0]);
    tokio::time::sleep(Duration::from_mins(2)).await;
    let liveness_failures = world.health.liveness_failures();
    let stuck = "the reconcile of shop/a has made no progress for 1";
    assert!(liveness_failures.len() == 1 && liveness_failures[0].starts_with(stuck), "{liveness_failures:?}");
    drop(held);
    world.wait("the reconcile to get on", async || world.health.obstacles().is_empty()).await;
    world.end().await;
}

/// A namespace that is created only after half of all requests have been answered with 503 for ten minutes.
#[tokio::test(start_paused = true)]
async fn an_absent_namespace_is_watched_after_a_bad_start() {
    for seed in 1..=8 {
        let mut world = OperatorFixture::with_seed("off", seed);
        world.namespaces = vec!["later".to_owned()];
        for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Watch] {
            let fault = InjectedFault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None);
            world.faults.add(FaultRule { kind, path: String::new(), trigger: Trigger::PerMille(500), fault });
        }
        // Watches that are opened fail later.
        let fault = InjectedFault::Watch(WatchFault::HangBefore(0));
        let trigger = Trigger::PerMille(500);
        world.faults.add(FaultRule {
            kind: RequestKind::Watch,
            path: "/namespaces/".to_owned(),
            trigger,
            fault,
        });
        world.begin();
        tokio::time::sleep(Duration::from_mins(10)).await;
        world.faults.clear();
        // A watch that hangs is given up after three minutes.
        tokio::time::sleep(Duration::from_mins(4)).await;
        assert_eq!(world.health.obstacles(), [""; 0], "seed {seed}");
        world.create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}),
        );
        let path = "/apis/5spot.finos.org/v1alpha1/namespaces/later/scheduledmachines";
        let mut object = machine("a", &json!({}));
        object["metadata"]["namespace"] = json!("later");
        world.create(path, &object);
        tokio::time::sleep(Duration::from_secs(10)).await;
        let found = world.get(&format!("{path}/a")).await.expect("it is there");
        assert_eq!(found["status"]["phase"], "Inactive", "seed {seed}");
        world.end().await;
    }
}
