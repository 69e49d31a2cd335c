//! Cluster API is upgraded, or goes back, under a running controller.

use crate::play::{is_lent, machine};
use crate::world::World;
use serde_json::{Value, json};

/// Serves a kind of Cluster API in this version, and in no other any more.
async fn serve(world: &World, plural: &str, version: &str) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = format!("{plural}.cluster.x-k8s.io");
    let path = format!("{definitions}/{name}");
    let mut spec: Value = world.get(&path).await.expect("a definition")["spec"].clone();
    assert_ne!(spec["versions"][0]["name"], version);
    spec["versions"][0]["name"] = version.into();
    world.delete(&path).await;
    world.wait("it to be gone", async || world.get(&path).await.is_none()).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec,
    });
    world.create(definitions, &definition);
}

#[tokio::test(start_paused = true)]
async fn another_version_of_cluster_api_is_found_without_a_restart() {
    let mut world = World::new("info");
    world.begin();
    world.until(0, "08:00:00").await;
    for plural in ["machines", "clusters", "machinedrainrules"] {
        serve(&world, plural, "v1beta1").await;
    }
    world.lend(&machine("m0", &json!({})));
    world.until(0, "09:00:01").await;
    world.wait("it to be lent", async || is_lent(&world, "m0").await).await;
    let status = world.status("m0").await;
    assert_eq!(status["machineRef"]["apiVersion"], "cluster.x-k8s.io/v1beta1", "{status}");
    world.end().await;
}
