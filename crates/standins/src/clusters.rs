//! Creates a Cluster for every `clusterName` in use, so that users of the sandbox do not have to.
//!
//! A Cluster is created once and not changed afterwards: a user who deletes it wants to see what happens
//! without it.

use super::cluster_api::Contract;
use super::context::{ActorContext, Change};
use super::kinds::{CONTROL_PLANE_GROUP, CORE_GROUP, Kind, ObjectKey};
use super::work_queue::{Actor, Next};
use five_spot_api::names;
use serde_json::json;

/// The stand-in that creates Clusters.
#[derive(Debug)]
pub(super) struct Clusters {
    /// The kubeconfig of the workload cluster; without it, Nodes are in the cluster of the Machines.
    kubeconfig: Option<String>,
}

impl Clusters {
    pub(super) fn new(kubeconfig: Option<String>) -> Self {
        Self { kubeconfig }
    }

    /// The custom kinds to watch.
    pub(super) fn wants(group: &str, kind: &str) -> bool {
        group == names::GROUP && kind == "ScheduledMachine"
            || group == CORE_GROUP && matches!(kind, "Cluster" | "Machine")
            || group == CONTROL_PLANE_GROUP && !kind.ends_with("Template")
    }

    async fn write_kubeconfig(&self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<()> {
        let Some(kubeconfig) = &self.kubeconfig else {
            return Ok(());
        };
        let name = format!("{}-kubeconfig", key.name);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": key.name}},
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": kubeconfig},
        });
        context.create(&Kind::secret().key(&key.namespace, &name), secret).await
    }
}

impl Actor for Clusters {
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey> {
        let Some(clusters) = context.kind(CORE_GROUP, "Cluster") else {
            return Vec::new();
        };
        let named = |namespace: &str, object: &kube::api::DynamicObject| {
            object.data["spec"]["clusterName"].as_str().map(|name| clusters.key(namespace, name))
        };
        if change.key.kind == Kind::definition() {
            // The CRD of Clusters may have just been established.
            let namers =
                [context.kind(names::GROUP, "ScheduledMachine"), context.kind(CORE_GROUP, "Machine")];
            let known = namers.iter().flatten().flat_map(|kind| context.list(kind, ""));
            return known.filter_map(|(key, object)| named(&key.namespace, object)).collect();
        }
        if change.key.kind == clusters {
            return Vec::new();
        }
        change.after.as_ref().and_then(|object| named(&change.key.namespace, object)).into_iter().collect()
    }

    async fn reconcile(&mut self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
        if !key.kind.is(CORE_GROUP, "Cluster") || context.get(key).is_some() {
            return Ok(None);
        }
        // The kubeconfig comes first: Cluster API retries a failed connection only after half a minute.
        self.write_kubeconfig(key, context).await?;
        let mut cluster = json!({
            "apiVersion": key.kind.api_version(), "kind": key.kind.kind(),
            "metadata": {"name": key.name},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}},
        });
        if let Some(control_plane) = make_control_plane(key, context).await? {
            cluster["spec"]["controlPlaneRef"] = Contract::of(&key.kind).reference(&control_plane);
        }
        context.create(key, cluster).await?;
        Ok(None)
    }
}

/// An externally managed control plane of the first available kind. Without one, Cluster API regards every
/// Node as the last one: it would neither drain nor delete it.
async fn make_control_plane(
    cluster: &ObjectKey,
    context: &mut ActorContext,
) -> kube::Result<Option<ObjectKey>> {
    let Some(kind) = context.kind_of_group(CONTROL_PLANE_GROUP) else {
        return Ok(None);
    };
    let key = kind.key(&cluster.namespace, &cluster.name);
    let object = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": key.name}, "spec": {},
    });
    context.create(&key, object).await?;
    Ok(Some(key))
}
