//! A scheduler and a controller of Deployments, just enough for their pods to come back elsewhere.

use super::drive::Actor;
use super::kinds::{nodes, pods, resource};
use super::objects::{Objects, has_condition, place};
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::time::Duration;

/// Keeps the pods of Deployments, and puts new ones on nodes that take them.
pub struct Scheduler {
    objects: Objects,
}

impl Scheduler {
    /// A scheduler that uses `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { objects: Objects::new(client, "sandbox-scheduler") }
    }

    async fn keep_replicas(&self, deployment: &Value, pods_now: &[Value], nodes_now: &[Value]) -> Result<(), kube::Error> {
        let uid = &deployment["metadata"]["uid"];
        let own: Vec<&Value> = pods_now
            .iter()
            .filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid)
            .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .collect();
        let wanted = usize::try_from(deployment["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(0);
        for extra in own.iter().skip(wanted) {
            self.objects.delete(&pods(), extra, None).await?;
        }
        for _ in own.len()..wanted {
            // A pod that fits nowhere is not made: the next change of a node brings the next try.
            let Some(node) = pick(nodes_now, pods_now) else { return Ok(()) };
            let pod = pod_of(deployment, place(node).1);
            self.objects.create(&pods(), &pod).await?;
        }
        Ok(())
    }
}

/// A ready node that takes pods: the one with the fewest, the first by name among equals.
fn pick<'n>(nodes_now: &'n [Value], pods_now: &[Value]) -> Option<&'n Value> {
    let takes = |node: &&Value| {
        let is_tainted = node["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["effect"] != "PreferNoSchedule");
        has_condition(node, "Ready") && node["spec"]["unschedulable"] != true && !is_tainted && node["metadata"]["deletionTimestamp"].is_null()
    };
    let load = |node: &&Value| pods_now.iter().filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]).count();
    nodes_now.iter().filter(takes).min_by_key(load)
}

fn pod_of(deployment: &Value, node: &str) -> Value {
    let (namespace, name) = place(deployment);
    let template = &deployment["spec"]["template"];
    let mut spec = template["spec"].clone();
    spec["nodeName"] = node.into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": namespace, "generateName": format!("{name}-"),
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": deployment["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

fn deployments() -> ApiResource {
    resource("apps", "v1", "Deployment", "deployments")
}

impl Actor for Scheduler {
    fn watches(&self) -> Vec<ApiResource> {
        vec![deployments(), pods(), nodes()]
    }

    async fn step(&self) -> Result<Option<Duration>, kube::Error> {
        let nodes_now = self.objects.list(&nodes(), "").await?;
        for deployment in self.objects.list(&deployments(), "").await? {
            let pods_now = self.objects.list(&pods(), "").await?;
            self.keep_replicas(&deployment, &pods_now, &nodes_now).await?;
        }
        Ok(None)
    }
}
