//! Deleting objects: one by one, with their dependents, and with their namespace.

use std::sync::Arc;

use anyhow::ensure;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use serde_json::json;

use super::server::{SCHEDULED_MACHINE, Server, with_both};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        dependents_follow_the_propagation_policy,
        a_namespace_takes_everything_with_it,
        many_are_deleted_at_once
    ]
}

/// A `ScheduledMachine`, and a Secret that belongs to it.
async fn own(server: &mut Server) -> anyhow::Result<()> {
    server.ok_with("apply -f -", SCHEDULED_MACHINE).await?;
    let uid = server.field("sm/one", ".metadata.uid").await?;
    let owned = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": "owned",
            "ownerReferences": [{
                "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "name": "one", "uid": uid,
                "blockOwnerDeletion": true,
            }],
        },
    });
    server.ok_with("create -f -", &owned.to_string()).await?;
    Ok(())
}

async fn dependents_follow_the_propagation_policy(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        for cascade in ["background", "foreground"] {
            own(server).await?;
            server.ok(&format!("delete sm one --cascade={cascade} --wait=true")).await?;
            server.ok_unheard("wait --for=delete secret/owned --timeout=60s").await?;
            let gone = server.run("get sm/one secret/owned").await?;
            ensure!(gone.code == Some(1), "{}", gone.text);
        }
        own(server).await?;
        server.ok("delete sm one --cascade=orphan").await?;
        server.ok("get secret/owned -o jsonpath={.metadata.name}{.metadata.ownerReferences}").await?;
        server.ok("delete secret/owned --now").await?;
        server.run("delete secret/owned").await?;
        server.ok("delete secret/owned --ignore-not-found").await?;
        Ok(())
    })
    .await
}

async fn a_namespace_takes_everything_with_it(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        let doomed = format!("{}-doomed", server.namespace);
        server.ok(&format!("create namespace {doomed}")).await?;
        server.ok_with(&format!("apply --namespace {doomed} -f -"), SCHEDULED_MACHINE).await?;
        let deleted = server.ok(&format!("delete ns {doomed} --timeout=60s")).await?;
        ensure!(deleted.contains("deleted"), "{deleted}");
        let gone = server.run(&format!("get ns {doomed}")).await?;
        ensure!(gone.code == Some(1) && gone.text.contains("NotFound"), "{}", gone.text);
        let nothing = server.ok(&format!("get sm --namespace {doomed}")).await?;
        ensure!(nothing.contains("No resources found"), "{nothing}");
        Ok(())
    })
    .await
}

async fn many_are_deleted_at_once(context: Arc<TestContext>) -> TestResult {
    with_both(&context, async |server| {
        for name in ["a", "b", "c"] {
            let manifest = SCHEDULED_MACHINE.replace("name: one", &format!("name: {name}"));
            server.ok_with("apply -f -", &manifest).await?;
        }
        server.ok("label sm a b team=red").await?;
        server.ok("delete sm -l team=red --dry-run=server").await?;
        server.ok("delete sm -l team=red").await?;
        server.ok("get sm -o name").await?;
        server.ok("delete sm --all").await?;
        let nothing = server.ok("get sm").await?;
        ensure!(nothing.contains("No resources found"), "{nothing}");
        Ok(())
    })
    .await
}
