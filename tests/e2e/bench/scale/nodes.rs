//! Nodes of lent machines with pods on them, as a kubelet and Cluster API report them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::{ScheduledMachine, names};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::objects;
use super::site::Site;

/// Machines that join at a time.
const AT_A_TIME: usize = 16;

/// The time between two looks at all objects.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The manager of the fields that Cluster API writes.
const CLUSTER_API: &str = "capi-stand-in";

/// The machines of a namespace to which Nodes belong.
pub(super) struct Nodes<'a> {
    pub(super) site: &'a Site,
    pub(super) namespace: &'static str,
    /// The numbers of their objects.
    pub(super) numbers: Vec<usize>,
    /// The number of pods on each Node.
    pub(super) pods: usize,
}

impl Nodes<'_> {
    /// Creates the Nodes with their pods, and then lets the Machines refer to them.
    pub(super) async fn join(&self) -> anyhow::Result<()> {
        // Pods need this account, and no controller creates it here.
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": self.namespace},
        });
        self.site.apply(&account).await?;
        stream::iter(self.numbers.iter().copied())
            .map(|number| self.join_one(number))
            .buffer_unordered(AT_A_TIME)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    async fn join_one(&self, number: usize) -> anyhow::Result<()> {
        let admin = self.site.admin();
        let nodes: Api<Node> = Api::all(admin.clone());
        let post = PostParams::default();
        nodes.create(&post, &serde_json::from_value(node(number))?).await?;
        for pod in (0..self.pods).map(|pod| self::pod(number, pod)) {
            self.pods().create(&post, &serde_json::from_value(pod)?).await?;
        }
        let resource =
            ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Machine"));
        let machines: Api<DynamicObject> = Api::namespaced_with(admin, self.namespace, &resource);
        let name = names::machine(&objects::name(number));
        let parameters =
            PatchParams { field_manager: Some(CLUSTER_API.to_owned()), ..PatchParams::default() };
        let spec = json!({"spec": {"providerID": provider_id(number)}});
        machines.patch(&name, &parameters, &Patch::Merge(spec)).await?;
        machines.patch_status(&name, &parameters, &Patch::Merge(machine_status(number))).await?;
        Ok(())
    }

    /// Waits until the status of each object names its Node.
    pub(super) async fn until_known(&self, deadline: Timestamp) -> anyhow::Result<()> {
        loop {
            let objects = self.site.objects(self.namespace).await?.into_iter();
            let has_node = |object: &ScheduledMachine| {
                object.status.as_ref().is_some_and(|status| status.node_ref.is_some())
            };
            let known: BTreeSet<String> =
                objects.filter(has_node).filter_map(|object| object.metadata.name).collect();
            let mut expected = self.numbers.iter().map(|number| objects::name(*number));
            let unknown = expected.find(|name| !known.contains(name));
            let Some(unknown) = unknown else { return Ok(()) };
            ensure!(Timestamp::now() < deadline, "the status of {unknown} names no Node at {deadline}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Checks that no pod is left.
    pub(super) async fn are_empty(&self) -> anyhow::Result<()> {
        let pods = self.pods().list_metadata(&ListParams::default()).await?;
        ensure!(pods.items.is_empty(), "{} pods are left, as {}", pods.items.len(), pods.items[0].name_any());
        Ok(())
    }

    /// Checks that each Node is cordoned and that no pod is left. Nobody removes the Nodes here.
    pub(super) async fn are_drained(&self) -> anyhow::Result<()> {
        self.are_empty().await?;
        let nodes = Api::<Node>::all(self.site.admin()).list(&ListParams::default()).await?;
        ensure!(nodes.items.len() == self.numbers.len(), "there are {} Nodes", nodes.items.len());
        let is_open = |node: &&Node| node.spec.as_ref().is_none_or(|spec| spec.unschedulable != Some(true));
        let open = nodes.items.iter().find(is_open).map(Node::name_any);
        open.map_or(Ok(()), |name| Err(anyhow::anyhow!("Node {name} is not cordoned")))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.site.admin(), self.namespace)
    }
}

/// The name of the Node of an object.
pub(super) fn name(number: usize) -> String {
    format!("node-{number:06}")
}

fn provider_id(number: usize) -> String {
    format!("bench://{}", name(number))
}

fn node(number: usize) -> Value {
    let now = Timestamp::now();
    json!({
        "metadata": {"name": name(number)},
        "spec": {"providerID": provider_id(number)},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]},
    })
}

/// A pod without a kubelet: it has no grace period, so that the API server removes it when it is evicted.
fn pod(number: usize, pod: usize) -> Value {
    let node = name(number);
    json!({
        "metadata": {"name": format!("on-{node}-{pod}")},
        "spec": {
            "nodeName": node, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
        },
    })
}

fn machine_status(number: usize) -> Value {
    json!({"status": {
        "phase": "Running",
        "nodeRef": {"name": name(number)},
        "conditions": [{
            "type": "NodeHealthy", "status": "True", "reason": "NodeHealthy", "message": "",
            "lastTransitionTime": Timestamp::now(),
        }],
    }})
}
