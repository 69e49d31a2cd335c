//! One look with a plain connection gives the world and the decision that the caches of a controller give.

use crate::fixture::OperatorFixture;
use crate::recorded_run::{machine, node, tenants};
use five_spot_api::Phase;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::{self, Caches};
use five_spot_cluster::view::{self, Confirmed, Looked};
use five_spot_core::claim::Claim;
use five_spot_core::world::{Failures, NodeFact};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

/// The object as the caches of a controller show it, once they are complete and confirmed.
async fn from_caches(caches: &Arc<Caches>, key: &ObjectKey) -> Confirmed {
    let failures = Failures::default();
    for _ in 0..600 {
        if let Some(observed) = view::observe(caches, key, &failures).await.expect("the API answers") {
            let wants_pods = observed.decide(caches.now()).watch_pods;
            view::watch_pods(caches, key, &observed, wants_pods);
            let has_pods = observed.world.node.found().is_none_or(|node| node.pods.is_some());
            if (!wants_pods || has_pods)
                && let Some(confirmed) =
                    view::confirm(caches, key, &observed, view::ConfirmScope::Everything, &failures)
                        .await
                        .expect("the API answers")
            {
                return confirmed;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the caches of {key} are not complete after a minute");
}

/// Compares a look with the caches of a program of its own.
async fn compare(world: &OperatorFixture, name: &str) -> Looked {
    let key = ObjectKey::new("shop", name);
    let (stop, settings) = (CancellationToken::new(), OperatorFixture::cluster_settings());
    let (changes, _changed) = unbounded_channel();
    let caches = cache::start(world.connection(), settings.clone(), changes, &stop).expect("a client");
    let watched = from_caches(&caches, &key).await;
    let looked = view::look(&world.connection(), &key, &settings).await.expect("the API answers");
    let looked = looked.unwrap_or_else(|| panic!("{name} exists"));
    let worlds = [looked.observed(), watched.observed()].map(|observed| {
        let mut world = observed.world.clone();
        // Each of them has seen that a machine is free since it began to look.
        if let Claim::Free { since, .. } = &mut world.claims.current {
            *since = Timestamp::UNIX_EPOCH;
        }
        world
    });
    assert_eq!(worlds[0], worlds[1], "{name}");
    let now = world.clock.now();
    let decision = looked.observed().decide(now);
    assert_eq!(decision, watched.observed().decide(now), "{name}");
    let status = world.status(name).await;
    assert_eq!(decision.status.phase.map(Phase::as_str), status["phase"].as_str(), "{name}");
    stop.cancel();
    looked
}

#[tokio::test(start_paused = true)]
async fn a_look_sees_what_the_caches_of_a_controller_see() {
    let mut world = OperatorFixture::new("off");
    world.lend(&machine("shift", &json!({})));
    tenants(&world, "shift", 0);
    world.lend(&machine("switch", &json!({})));
    let kind = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Absent", "spec": {}});
    world.lend(&machine("broken", &json!({"infrastructureSpec": kind})));
    world.begin();
    world.phase("shift", "Inactive").await;
    compare(&world, "shift").await;

    world.until(0, "09:30:00").await;
    world.phase("shift", "Active").await;
    let active = compare(&world, "shift").await;
    assert!(matches!(active.observed().world.node, NodeFact::Found(_)));
    let broken = compare(&world, "broken").await;
    assert!(!broken.observed().world.references.is_empty(), "its kind does not exist");

    world.change("switch", &json!({"killSwitch": true})).await;
    world.phase("switch", "Terminated").await;
    compare(&world, "switch").await;

    world.change("shift", &json!({"schedule": {"enabled": false}})).await;
    world.phase("shift", "ShuttingDown").await;
    // The budget refuses every eviction.
    let draining = compare(&world, "shift").await;
    let found = draining.observed().world.node.found().expect("the node is drained");
    assert_eq!(found.pods.as_ref().map(Vec::len), Some(2), "{}", node("shift"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_look_changes_nothing_and_knows_what_does_not_exist() {
    let world = OperatorFixture::new("off");
    world.lend(&machine("shift", &json!({})));
    let (connection, settings) = (world.connection(), OperatorFixture::cluster_settings());
    let absent = view::look(&connection, &ObjectKey::new("shop", "absent"), &settings).await;
    assert!(absent.expect("the API answers").is_none());
    let looked = view::look(&connection, &ObjectKey::new("shop", "shift"), &settings).await;
    assert!(looked.expect("the API answers").is_some());
    let requests = world.asked_since(world.clock.now());
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.method, http::Method::GET, "{}", request.uri);
        assert!(!request.uri.contains("watch=true"), "{}", request.uri);
    }
}
