//! Drains: many pods at once, drain rules, and blockers other than budgets.

use super::closing::{hold, never_deletes_pods, slowly};
use crate::environment::Environment;
use crate::fixtures::{EXIT_DELAY_ANNOTATION, override_until};
use crate::kinds::{BUDGET, DAEMON_SET, DEPLOYMENT, DRAIN_RULE, MACHINE, NODE, POD};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::{Subject, condition};
use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        two_hundred_pods => 10,
        mirror_and_daemon_pods_stay => 3,
        who_comes_back_is_asked_to_leave_once: RealClusterApi => 10,
        rules_and_labels_of_cluster_api => 2,
        a_cordon_of_another_client_stays => 126,
        volumes_are_waited_for => 14,
        unreachable_node_is_not_waited_for: ExclusiveEnvironment => 2,
    ]
}

/// Pods are evicted in parallel: all of them take little longer than one.
async fn two_hundred_pods(env: &dyn Environment) -> anyhow::Result<Ending> {
    const PODS: usize = 200;
    const LONGEST: i64 = 8;
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    env.pods_on(&node, PODS, LONGEST).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    let drained = |object: &Value| condition(object, "Drained")["status"] == "True";
    let object = subject.until("to be drained", drained).await?;
    let drain = &object["status"]["drain"];
    ensure!(drain["total"] == PODS && drain["evicted"] == PODS, "{object}");
    let began = time(&drain["startedAt"])?;
    let took = time(&condition(&object, "Drained")["lastTransitionTime"])?.duration_since(began).as_secs();
    // One after the other they would have taken two hundred times as long.
    ensure!((LONGEST..=6 * LONGEST).contains(&took), "{PODS} pods that take {LONGEST} s each took {took} s");
    subject.until_phase("Inactive").await?;
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// Pods that tolerate a cordon return to the node as soon as they have left it, because there is no other node. They do
/// not block the drain, like those of a `DaemonSet`.
async fn who_comes_back_is_asked_to_leave_once(env: &dyn Environment) -> anyhow::Result<Ending> {
    const PODS: usize = 2;
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    let undeterred = json!({
        "metadata": {"annotations": {EXIT_DELAY_ANNOTATION: "3s"}},
        "spec": {"tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 8},
    });
    env.deployment_that(&node, "undeterred", PODS, undeterred).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    subject.until_phase("Inactive").await?;
    let evictions = env.writes()?.iter().filter(|write| write.resource == "pods/eviction").count();
    // A pod that returns within the second in which the drain began looks like one that was there before, and is
    // evicted again.
    ensure!((PODS..10 * PODS).contains(&evictions), "{evictions} evictions");
    never_deletes_pods(env)?;
    env.delete(DEPLOYMENT, "undeterred").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A mirror pod cannot be removed, and a `DaemonSet` would create its pod again at once: neither blocks a drain or is
/// evicted.
async fn mirror_and_daemon_pods_stay(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    let mirror = json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "by-a-kubelet"}}});
    env.pod_that(&node, "mirror", mirror).await?;
    let template = json!({
        "metadata": {"labels": {"app": "daemon"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
        },
    });
    let spec = json!({"selector": {"matchLabels": {"app": "daemon"}}, "template": template});
    let daemon_set = env.create(DAEMON_SET, json!({"metadata": {"name": "daemon"}, "spec": spec})).await?;
    if env.pace().is_virtual {
        // No controller creates its pod here.
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "daemon", "controller": true,
            "uid": daemon_set["metadata"]["uid"],
        });
        env.pod_that(&node, "daemon", json!({"metadata": {"ownerReferences": [owner]}})).await?;
    } else {
        let runs = |set: &Value| set["status"]["numberReady"] == 1;
        env.until(DAEMON_SET, "daemon", "to have a pod", runs).await?;
    }
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    let object = subject.until_phase("Inactive").await?;
    ensure!(object["status"]["drain"]["total"] == 1, "only one has to leave: {object}");
    let writes = env.writes()?;
    let evicted = writes.iter().filter(|write| write.resource == "pods/eviction");
    ensure!(evicted.clone().all(|write| write.name == "solo"), "{:?}", evicted.collect::<Vec<_>>());
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// Our drain treats pods as Cluster API's does: it skips them, delays them, or waits until they complete.
async fn rules_and_labels_of_cluster_api(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    let rule = |name: &str, drain: Value| {
        let pods = json!([{"selector": {"matchLabels": {"app": name}}}]);
        json!({"metadata": {"name": name}, "spec": {"drain": drain, "pods": pods}})
    };
    env.create(DRAIN_RULE, rule("ruled", json!({"behavior": "Skip"}))).await?;
    env.create(DRAIN_RULE, rule("late", json!({"behavior": "Drain", "order": 10}))).await?;
    let labelled = |value: &str| json!({"metadata": {"labels": {"cluster.x-k8s.io/drain": value}}});
    env.pod_that(&node, "labelled", labelled("skip")).await?;
    env.pod_that(&node, "job", labelled("wait-completed")).await?;
    for name in ["ruled", "late"] {
        env.pod_on(&node, name).await?;
    }
    hold(env, &node).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    let object = subject.until("to name both that hold it", is_held_by(env, &["job", "web"])).await?;
    ensure!(object["status"]["drain"]["total"] == 3, "two pods are left alone: {object}");
    // The pods of the first group are still there, so the later ones are not evicted yet.
    let stays = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null() && !pod.is_null();
    env.lasts(POD, "late", "running", Duration::from_secs(7), stays).await?;
    env.delete(BUDGET, "web").await?;
    env.until_gone(POD, "late").await?;
    subject.until("to wait for the job alone", is_held_by(env, &["job"])).await?;
    env.lasts(POD, "job", "running", Duration::from_secs(7), stays).await?;
    env.patch_status(POD, "job", json!({"phase": "Succeeded"})).await?;
    subject.until_phase("Inactive").await?;
    let writes = env.writes()?;
    let evicted = |name: &str| -> Option<Timestamp> {
        let mut of = writes.iter().filter(|write| write.resource == "pods/eviction" && write.name == name);
        of.find(|write| write.code == Some(201)).map(|write| write.time)
    };
    for name in ["ruled", "labelled"] {
        ensure!(evicted(name).is_none(), "{name} was to be left alone");
    }
    // After a crash during an eviction the controller does not know about it.
    let eviction_times: Vec<Timestamp> = ["web", "late", "job"].into_iter().filter_map(evicted).collect();
    ensure!(eviction_times.is_sorted_by(|one, other| one < other), "not in their order: {eviction_times:?}");
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A node that someone else has cordoned stays cordoned.
async fn a_cordon_of_another_client_stays(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    hold(env, &node).await?;
    env.patch(NODE, &node, json!({"spec": {"unschedulable": true}})).await?;
    let until = env.in_seconds(env.leisurely(12));
    subject.set(override_until("down", until)).await?;
    subject.until("to name what holds it", is_held_by(env, &["web"])).await?;
    subject.until_ready().await?;
    let cordoned = |node: &Value| node["spec"]["unschedulable"] == true;
    env.lasts(NODE, &node, "being cordoned", Duration::from_secs(5), cordoned).await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// A node whose pods are gone may still have volumes. Cluster API waits for them, and so does 5-Spot, except in an
/// emergency.
async fn volumes_are_waited_for(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    let volumes = json!([{"name": "kubernetes.io/csi/example.org^data", "devicePath": ""}]);
    env.patch_status(NODE, &node, json!({"volumesAttached": volumes})).await?;
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    let waits = |machine: &Value| !machine["metadata"]["deletionTimestamp"].is_null();
    env.until(MACHINE, &subject.machine(), "to be deleted", waits).await?;
    env.until_gone(POD, "solo").await?;
    let there = |node: &Value| !node.is_null();
    env.lasts(NODE, &node, "existing", Duration::from_secs(8), there).await?;
    let object = subject.get().await?;
    ensure!(object["status"]["phase"] == "ShuttingDown", "{object}");
    subject.set(json!({"killSwitch": true})).await?;
    subject.until_phase("Terminated").await?;
    never_deletes_pods(env)?;
    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
}

/// On a node that does not report, the end of a pod is never confirmed: a pod that should have ended by now blocks
/// nothing.
async fn unreachable_node_is_not_waited_for(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    env.pod_on(&node, "solo").await?;
    env.cut_off(&node, true).await?;
    let unheard = |node: &Value| condition(node, "Ready")["status"] == "Unknown";
    env.until(NODE, &node, "to be given up", unheard).await?;
    subject.until_condition("MachineReady", "False", "NodeNotReady").await?;
    let begin = env.now();
    subject.set(override_until("down", begin + jiff::SignedDuration::from_hours(10))).await?;
    subject.until_phase("Inactive").await?;
    let took = env.now().duration_since(begin);
    ensure!(took < jiff::SignedDuration::from_mins(9), "it was waited for until the deadline: {took}");
    env.cut_off(&node, false).await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// Returns true if the status names these pods, and no others, as those that block the drain.
fn is_held_by(env: &dyn Environment, names: &[&str]) -> impl Fn(&Value) -> bool + Send + use<> {
    let expected: Vec<Value> =
        names.iter().map(|name| json!(format!("{}/{name}", env.namespace()))).collect();
    move |object| {
        let blocked = object["status"]["drain"]["blocked"].as_array().into_iter().flatten();
        blocked.map(|pod| pod["pod"].clone()).eq(expected.iter().cloned())
    }
}

fn time(text: &Value) -> anyhow::Result<Timestamp> {
    text.as_str().context("a time")?.parse().with_context(|| format!("{text} is no time"))
}
