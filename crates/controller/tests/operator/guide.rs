//! The symptoms of an unhealthy controller in the guide of `kube`: none of them occurs.
//! `docs/healthy-controller.md` goes through the whole list.

use crate::fixture::{Asked, OperatorFixture};
use crate::recorded_run::{is_lent, machine};
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Machines that are lent, none with anything to do.
async fn lent(count: usize) -> OperatorFixture {
    let mut world = OperatorFixture::new("info");
    world.concurrency = 4;
    for number in 0..count {
        world.lend(&machine(&format!("m{number}"), &json!({})));
    }
    world.begin();
    world.until(0, "09:00:01").await;
    world
        .wait("all to be lent", async || {
            for number in 0..count {
                if !is_lent(&world, &format!("m{number}")).await {
                    return false;
                }
            }
            true
        })
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    world
}

fn is_watch(asked: &Asked) -> bool {
    asked.uri.contains("watch=true")
}

/// The number of reconciles by reason.
fn reasons(lines: &[Value]) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for line in lines.iter().filter(|line| line["fields"]["message"] == "Starting reconciliation") {
        let reason = line["span"]["object.reason"].as_str().expect("a reason").to_owned();
        *reasons.entry(reason).or_insert(0) += 1;
    }
    reasons
}

#[tokio::test(start_paused = true)]
async fn our_own_writes_are_no_reason_to_reconcile() {
    let mut world = lent(1).await;
    let status = world.status("m0").await;
    assert_eq!(status["phase"], "Active");
    // Its finalizer, and four phases with their conditions, were written; what was heard of the object is that it is there.
    let reasons = reasons(&world.log.lines());
    assert_eq!(reasons["object updated"], 1, "{reasons:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_while_nothing_happens() {
    let mut world = lent(20).await;
    let quiet = world.clock.now();
    tokio::time::sleep(Duration::from_hours(5)).await;
    let asked: Vec<Asked> = world.asked_since(quiet).into_iter().filter(|asked| !is_watch(asked)).collect();
    assert!(asked.is_empty(), "{asked:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_takes_ten_requests() {
    let mut world = OperatorFixture::new("info");
    world.lend(&machine("m0", &json!({})));
    world.begin();
    world.until(0, "08:59:59").await;
    let before = world.clock.now();
    world.until(0, "09:00:01").await;
    assert_eq!(world.status("m0").await["phase"], "Active");
    let kind = |uri: &str| {
        let path = uri.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').skip_while(|part| *part != "namespaces").skip(2).collect();
        parts.into_iter().filter(|part| !part.starts_with("m0")).collect::<Vec<_>>().join("/")
    };
    let mut asked: Vec<String> = world
        .asked_since(before)
        .iter()
        .filter(|asked| !is_watch(asked) && !asked.uri.contains("-instance-"))
        .map(|asked| format!("{} {}", asked.method, kind(&asked.uri)))
        .collect();
    asked.sort();
    let expected = [
        "GET machines",
        "GET scheduledmachines",
        "PATCH k0sworkerconfigs",
        "PATCH machines",
        "PATCH remotemachines",
        "PATCH scheduledmachines/status",
        "PATCH scheduledmachines/status",
        "POST events",
        "POST events",
        "POST leases",
    ];
    assert_eq!(asked, expected);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_and_watches_see_no_more_than_they_must() {
    let mut world = lent(1).await;
    // A drain, with which pods are watched.
    world.change("m0", &json!({"killSwitch": false, "schedule": {"enabled": false}})).await;
    world.phase("m0", "Disabled").await;
    let asked = world.asked_since(jiff::Timestamp::MIN);
    let path = |asked: &Asked| asked.uri.split('?').next().unwrap_or_default().to_owned();
    let lists = asked.iter().filter(|asked| asked.method == Method::GET && asked.uri.contains("limit="));
    assert!(lists.clone().count() >= 5, "{asked:?}");
    // The pods of a node are asked for once more before it is given back, all of them at once.
    let page = |uri: &str| {
        let most = match uri.split('?').next() {
            Some("/api/v1/pods") => ["limit=50", "limit=500"],
            _ => ["limit=50"; 2],
        };
        uri.split(['?', '&']).any(|parameter| most.contains(&parameter))
    };
    assert!(lists.clone().all(|asked| page(&asked.uri)), "{asked:?}");
    let narrow = |asked: &Asked| {
        asked.uri.contains("labelSelector=5spot.finos.org") || asked.uri.contains("fieldSelector=")
    };
    // Clusters and Nodes have to be known whoever made them, and have no label of ours; of namespaces and Secrets metadata
    // is read.
    let wide: BTreeSet<String> =
        asked.iter().filter(|asked| is_watch(asked) && !narrow(asked)).map(path).collect();
    let expected = [
        "/api/v1/namespaces",
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/nodes",
        "/apis/5spot.finos.org/v1alpha1/scheduledmachines",
        "/apis/cluster.x-k8s.io/v1beta2/clusters",
    ];
    assert_eq!(wide, expected.map(str::to_owned).into());
    let pods: Vec<&Asked> = asked.iter().filter(|asked| path(asked) == "/api/v1/pods").collect();
    assert!(!pods.is_empty() && pods.iter().all(|asked| asked.uri.contains("fieldSelector=spec.nodeName")));
    let secrets = asked.iter().filter(|asked| path(asked).ends_with("/secrets"));
    assert!(secrets.clone().all(|asked| asked.metadata || asked.uri.contains("fieldSelector=metadata.name")));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn more_objects_need_no_more_watches() {
    let watches = async |count| {
        let mut world = lent(count).await;
        let asked = world.asked_since(jiff::Timestamp::MIN);
        let mut names: Vec<String> = asked
            .iter()
            .filter(|asked| is_watch(asked))
            .map(|asked| asked.uri.split("&resourceVersion").next().unwrap_or_default().to_owned())
            .collect();
        names.sort();
        names.dedup();
        world.end().await;
        names
    };
    assert_eq!(watches(1).await, watches(12).await);
}

/// Changes a Secret, and counts how often it is read because of that.
async fn reads_after_change(world: &OperatorFixture, secret: &str, label: &str) -> usize {
    let changed = world.clock.now();
    let path = format!("/api/v1/namespaces/shop/secrets/{secret}");
    world.patch(&path, &json!({"metadata": {"labels": {"changed": label}}})).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let name = format!("metadata.name%3D{secret}");
    world.asked_since(changed).iter().filter(|asked| asked.uri.contains(&name)).count()
}

#[tokio::test(start_paused = true)]
async fn unneeded_objects_are_no_longer_read() {
    let mut world = lent(2).await;
    assert_eq!(reads_after_change(&world, "shop-kubeconfig", "a").await, 1);
    let elsewhere = json!({"kubeconfigSecretRef": {"name": "elsewhere", "key": "value"}});
    world.change("m0", &elsewhere).await;
    tokio::time::sleep(Duration::from_hours(4)).await;
    assert_eq!(reads_after_change(&world, "shop-kubeconfig", "b").await, 1, "the other one needs it");
    world.change("m1", &elsewhere).await;
    tokio::time::sleep(Duration::from_hours(3)).await;
    let reads = reads_after_change(&world, "shop-kubeconfig", "c").await;
    assert_eq!(reads, 1, "their machines live, and the nodes are where they were");
    tokio::time::sleep(Duration::from_hours(6)).await;
    assert_eq!(reads_after_change(&world, "shop-kubeconfig", "d").await, 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn missing_secrets_cost_one_watch_and_wake_only_their_users() {
    let mut world = OperatorFixture::new("info");
    world.concurrency = 4;
    let count = 60;
    for number in 0..count {
        let named = json!({"kubeconfigSecretRef": {"name": format!("missing-{number}"), "key": "value"}});
        world.lend(&machine(&format!("m{number}"), &named));
    }
    world.begin();
    world.until(0, "08:04:00").await;
    let of_secrets = |asked: &&Asked| asked.uri.contains("/secrets?");
    let asked = world.asked_since(jiff::Timestamp::MIN);
    let asked = asked.iter().filter(of_secrets).count();
    assert!(asked <= 3, "a list and a watch for {count} objects, not {asked} requests");
    let counted =
        |world: &OperatorFixture| reasons(&world.log.lines()).get("related object updated: Secret").copied();
    let before = counted(&world).unwrap_or(0);
    assert!(before <= count, "{before} reconciles for {count} objects");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "missing-7", "namespace": "shop"},
        "stringData": {"value": "no kubeconfig"},
    });
    world.create("/api/v1/namespaces/shop/secrets", &secret);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(counted(&world).unwrap_or(0), before + 1, "one object names it");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn no_more_are_reconciled_at_a_time_than_allowed() {
    let mut world = lent(30).await;
    let (mut open, mut most) = (0_i32, 0);
    for line in world.log.lines() {
        match line["fields"]["message"].as_str() {
            Some("Starting reconciliation") => open += 1,
            Some("Reconciliation finished") => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!(most, 4, "as many as allowed, and no more");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_costs_few_requests() {
    let mut world = lent(1).await;
    let opening = world.asked_since("2026-11-16T09:00:00Z".parse().expect("an instant"));
    let (reads, writes): (Vec<&Asked>, Vec<&Asked>) =
        opening.iter().filter(|asked| !is_watch(asked)).partition(|asked| asked.method == Method::GET);
    // The claim, three objects, the taints, a status for each of the phases and a few of the steps between, events.
    assert!(writes.len() <= 11, "{} writes: {writes:?}", writes.len());
    assert!(reads.len() <= 4, "{} reads: {reads:?}", reads.len());
    world.end().await;
}
