//! Each permission is removed in turn: the program names it, retries with growing intervals, and works once it is
//! granted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::grants::{Deed, granted};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use futures::future::try_join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::bare::{Bare, lease_rules, role, rules_without_leases, shipped_definition};
use super::program::Program;

pub(crate) fn tests() -> Vec<Test> {
    tests![each_missing_permission_is_named_until_it_is_granted, in_chosen_namespaces_the_namespace_is_named]
}

/// The number of concurrent programs: as many as two processors can start without a noticeable delay.
const AT_A_TIME: usize = 8;

/// The number of refusals of a repeated request to wait for.
const REFUSALS: usize = 4;

/// The timeout, which is only reached by a program that never retries.
const GUARD: Duration = Duration::from_secs(100);

async fn each_missing_permission_is_named_until_it_is_granted(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("permissions").await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    let mut rules = rules_without_leases()?;
    let mut deeds: Vec<Deed> = granted(&[role("", &Value::Array(rules.clone()))]).into_iter().collect();
    // Without Leases, the controller is ready, with a note.
    rules.extend(lease_rules()?);
    // A controller that lists all namespaces does not read one by name.
    deeds.retain(|deed| (deed.resource.as_str(), deed.verb.as_str()) != ("namespaces", "get"));
    for some in deeds.chunks(AT_A_TIME) {
        try_join_all(some.iter().map(|deed| without(&bare, &rules, deed))).await?;
    }
    bare.stop().await
}

/// Runs one program without one permission, and grants it later.
async fn without(bare: &Bare, rules: &[Value], deed: &Deed) -> TestResult {
    let name = format!("without-{}-{}", deed.verb, deed.resource.replace('/', "-"));
    let identity = bare.account(&name, &lacking(rules, deed)).await?;
    let program = Program::start(bare.directory(), &identity, &name, &[]).await?;
    let Deed { group, resource, verb } = deed;
    let missing = format!("not allowed to {verb} {resource} in API group \"{group}\" in all namespaces");
    let body = program.is_not_ready(&[&missing]).await?;
    ensure!(missing_permissions(&body) == 1, "nothing else is missing: {body}");
    let fields = program.logged("A permission is missing").await?;
    let named = [&fields["verb"], &fields["api_resource"], &fields["group"], &fields["api_namespace"]];
    ensure!(named == [&json!(verb), &json!(resource), &json!(group), &json!("all")], "{fields}");
    program.logged_with("Not ready", &[&format!("not allowed to {verb} {resource}")]).await?;
    // Watches are retried; occasional requests are not sent here.
    if matches!(verb.as_str(), "list" | "watch") && resource != "machinedrainrules" {
        refusals_are_rare(bare, &identity).await?;
    }
    bare.apply(&role(&name, &Value::Array(rules.to_vec()))).await?;
    program.is_ready().await?;
    program.logged("All permissions are granted").await?;
    program.stop().await
}

/// Checks that repeated refusals cost less than one request per second.
async fn refusals_are_rare(bare: &Bare, identity: &ServiceAccountIdentity) -> TestResult {
    let refused = async {
        loop {
            let records = bare.asked(identity)?;
            let refused = records.iter().filter(|record| record.code == Some(403));
            let times: Vec<Timestamp> = refused.map(|record| record.received).collect();
            if times.len() >= REFUSALS {
                return anyhow::Ok(times);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let times = tokio::time::timeout(GUARD, refused).await.context("the request was not retried")??;
    let seconds = times[times.len() - 1].duration_since(times[0]).as_secs();
    let intervals = i64::try_from(times.len() - 1)?;
    ensure!(intervals < seconds, "refused {} times in {seconds} s", times.len());
    Ok(())
}

/// The rules without one verb on one resource.
fn lacking(rules: &[Value], deed: &Deed) -> Value {
    let mut rules = rules.to_vec();
    for rule in &mut rules {
        let concerns =
            rule["apiGroups"] == json!([deed.group]) && rule["resources"] == json!([deed.resource]);
        if let Some(verbs) = rule["verbs"].as_array_mut().filter(|_| concerns) {
            verbs.retain(|verb| *verb != json!(deed.verb));
        }
    }
    // A rule without verbs is refused.
    rules.retain(|rule| rule["verbs"] != json!([]));
    Value::Array(rules)
}

async fn in_chosen_namespaces_the_namespace_is_named(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("chosen").await?;
    bare.define(&shipped_definition()).await?;
    bare.install_cluster_api().await?;
    let shipped = manifests::read(&crate::permissions::deploy("rbac-namespaced/namespace.yaml"))?;
    let rules = shipped.iter().find(|one| one["kind"] == "Role").context("a Role")?["rules"].clone();
    let rules = rules.as_array().cloned().context("rules")?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "5spot-controller", "namespace": SYSTEM_NAMESPACE},
    });
    let cluster = bare.control_plane().management();
    let identity =
        ServiceAccountIdentity::from_manifests(cluster, &[account], SYSTEM_NAMESPACE, "5spot-controller")
            .await?;
    for (number, (verb, group, resource)) in [
        ("get", "", "namespaces"),
        ("watch", "", "namespaces"),
        ("patch", "5spot.finos.org", "scheduledmachines/status"),
        ("list", "cluster.x-k8s.io", "machines"),
        ("create", "events.k8s.io", "events"),
    ]
    .into_iter()
    .enumerate()
    {
        let namespace = format!("shop-{number}");
        bare.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await?;
        let deed = Deed { group: group.into(), resource: resource.into(), verb: verb.into() };
        for document in &shipped {
            let mut document = document.clone();
            document["metadata"]["namespace"] = namespace.clone().into();
            if document["kind"] == "Role" {
                document["rules"] = lacking(&rules, &deed);
            }
            bare.apply(&document).await?;
        }
        let flag = format!("--watch-namespace={namespace}");
        let program = Program::start(bare.directory(), &identity, &namespace, &[&flag]).await?;
        let missing =
            format!("not allowed to {verb} {resource} in API group \"{group}\" in namespace {namespace}");
        let body = program.is_not_ready(&[&missing]).await?;
        ensure!(missing_permissions(&body) == 1, "nothing else is missing: {body}");
        program.logged_with("A permission is missing", &[verb, resource, group, &namespace]).await?;
        let mut whole = shipped.iter().find(|one| one["kind"] == "Role").context("a Role")?.clone();
        whole["metadata"]["namespace"] = namespace.into();
        bare.apply(&whole).await?;
        program.is_ready().await?;
        program.stop().await?;
    }
    bare.stop().await
}

/// The permissions without which the controller is not ready. Notes, such as those about Leases, which are
/// not granted here, are left out.
fn missing_permissions(body: &str) -> usize {
    body.lines().filter(|line| !line.starts_with("remark: ") && line.contains("not allowed to ")).count()
}
