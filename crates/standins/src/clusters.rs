//! Makes a Cluster for every `clusterName` that somebody names, so that a person's objects work without more ado.
//!
//! Once made, it is left alone: whoever deletes it wants to see what happens without.

use super::agenda::{Actor, Next};
use super::cluster_api::Contract;
use super::kinds::{CONTROL_PLANE_GROUP, CORE_GROUP, Kind, Place};
use super::stage::{Change, Stage};
use five_spot_api::names;
use serde_json::json;

/// The maker of Clusters.
#[derive(Debug)]
pub(super) struct Clusters {
    /// What leads into the workload cluster; without it 5-Spot finds Nodes where it finds Machines.
    kubeconfig: Option<String>,
}

impl Clusters {
    pub(super) fn new(kubeconfig: Option<String>) -> Self {
        Self { kubeconfig }
    }

    /// Which custom kinds it watches.
    pub(super) fn wants(group: &str, kind: &str) -> bool {
        group == names::GROUP && kind == "ScheduledMachine"
            || group == CORE_GROUP && matches!(kind, "Cluster" | "Machine")
            || group == CONTROL_PLANE_GROUP && !kind.ends_with("Template")
    }

    async fn write_kubeconfig(&self, place: &Place, stage: &mut Stage) -> kube::Result<()> {
        let Some(kubeconfig) = &self.kubeconfig else {
            return Ok(());
        };
        let name = format!("{}-kubeconfig", place.name);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": place.name}},
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": kubeconfig},
        });
        stage.create(&Kind::secret().place(&place.namespace, &name), secret).await
    }
}

impl Actor for Clusters {
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place> {
        let Some(clusters) = stage.kind(CORE_GROUP, "Cluster") else {
            return Vec::new();
        };
        let named = |namespace: &str, object: &kube::api::DynamicObject| {
            object.data["spec"]["clusterName"].as_str().map(|name| clusters.place(namespace, name))
        };
        if change.place.kind == Kind::definition() {
            // Clusters may only just have become possible.
            let namers = [stage.kind(names::GROUP, "ScheduledMachine"), stage.kind(CORE_GROUP, "Machine")];
            let known = namers.iter().flatten().flat_map(|kind| stage.list(kind, ""));
            return known.filter_map(|(place, object)| named(&place.namespace, object)).collect();
        }
        if change.place.kind == clusters {
            return Vec::new();
        }
        change.after.as_ref().and_then(|object| named(&change.place.namespace, object)).into_iter().collect()
    }

    async fn attend(&mut self, place: &Place, stage: &mut Stage) -> kube::Result<Next> {
        if !place.kind.is(CORE_GROUP, "Cluster") || stage.get(place).is_some() {
            return Ok(None);
        }
        // The way in comes first: Cluster API retries a failed connection only after half a minute.
        self.write_kubeconfig(place, stage).await?;
        let mut cluster = json!({
            "apiVersion": place.kind.api_version(), "kind": place.kind.kind(),
            "metadata": {"name": place.name},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}},
        });
        if let Some(control_plane) = make_control_plane(place, stage).await? {
            cluster["spec"]["controlPlaneRef"] = Contract::of(&place.kind).reference(&control_plane);
        }
        stage.create(place, cluster).await?;
        Ok(None)
    }
}

/// A control plane that somebody else runs, of the first kind that there is. Without one Cluster API takes every Node
/// for the last one: it would not drain it, and leave it behind.
async fn make_control_plane(cluster: &Place, stage: &mut Stage) -> kube::Result<Option<Place>> {
    let Some(kind) = stage.kind_of_group(CONTROL_PLANE_GROUP) else {
        return Ok(None);
    };
    let place = kind.place(&cluster.namespace, &cluster.name);
    let object = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind(), "metadata": {"name": place.name}, "spec": {},
    });
    stage.create(&place, object).await?;
    Ok(Some(place))
}
