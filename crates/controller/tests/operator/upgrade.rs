//! Cluster API is upgraded, or goes back, under a running controller.

use crate::fixture::OperatorFixture;
use crate::recorded_run::{is_lent, machine};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Takes a kind of Cluster API away, and returns how it was defined.
async fn withdraw(world: &OperatorFixture, plural: &str) -> Value {
    let path = format!("{DEFINITIONS}/{plural}.cluster.x-k8s.io");
    let definition = world.get(&path).await.expect("a definition");
    world.delete(&path).await;
    world.wait("it to be gone", async || world.get(&path).await.is_none()).await;
    definition["spec"].clone()
}

/// Serves a kind of Cluster API in this version, and in no other any more.
async fn serve(world: &OperatorFixture, plural: &str, version: &str) {
    let mut spec = withdraw(world, plural).await;
    assert_ne!(spec["versions"][0]["name"], version);
    spec["versions"][0]["name"] = version.into();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cluster.x-k8s.io")}, "spec": spec,
    });
    world.create(DEFINITIONS, &definition);
}

#[tokio::test(start_paused = true)]
async fn an_older_cluster_api_is_found_without_a_restart() {
    let mut world = OperatorFixture::new("info");
    world.begin();
    world.until(0, "08:00:00").await;
    for plural in ["machines", "clusters"] {
        serve(&world, plural, "v1beta1").await;
    }
    withdraw(&world, "machinedrainrules").await;
    world.lend(&machine("m0", &json!({})));
    world.until(0, "09:00:01").await;
    world.wait("it to be lent", async || is_lent(&world, "m0").await).await;
    let status = world.status("m0").await;
    assert_eq!(status["machineRef"]["apiVersion"], "cluster.x-k8s.io/v1beta1", "{status}");
    world.change("m0", &json!({"schedule": {"enabled": false}})).await;
    world.phase("m0", "Disabled").await;
    world.end().await;
}
