//! A Cluster of Cluster API whose nodes are in the workload cluster, created in an order that needs no
//! retries.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::kinds::{CLUSTER, REMOTE_CLUSTER, STUB_CONTROL_PLANE, ThirdPartyKind};
use crate::manifests::FIELD_MANAGER;
use crate::provider::EXTERNALLY_MANAGED_ANNOTATION;
use crate::test_clusters::TestContext;
use crate::wait::{self, WaitError};

/// The connection timeout: connecting takes a second, and thirty more after a failed first attempt.
const CONNECTED_WITHIN: Duration = Duration::from_secs(90);

/// The manager of the Cluster's control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlPlaneOwner {
    /// Externally managed: Cluster API drains nodes and deletes them.
    External,
    /// Cluster API: without a control plane Machine, it regards every node as the last one and changes none.
    ClusterApi,
}

/// The reason why there is no Cluster.
#[derive(Debug, thiserror::Error)]
pub enum CapiClusterError {
    /// An object was refused.
    #[error("failed to create the Cluster's {kind}: {source}")]
    Refused {
        /// Its kind.
        kind: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// Cluster API did not connect to the workload cluster.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl TestContext {
    /// Creates the Cluster `name` in this test's namespace and waits until Cluster API is connected to its
    /// nodes.
    pub async fn capi_cluster(
        &self,
        name: &str,
        owner: ControlPlaneOwner,
    ) -> Result<DynamicObject, CapiClusterError> {
        let workload = self.workload();
        let kubeconfig = std::fs::read_to_string(workload.kubeconfig()).unwrap_or_default();
        // Before the control plane reports that it is initialized: Cluster API retries a failed connection only
        // after 30 s.
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": format!("{name}-kubeconfig"), "labels": { "cluster.x-k8s.io/cluster-name": name },
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": { "value": kubeconfig },
        });
        let secrets: Api<Secret> = Api::namespaced(self.management().admin(), self.namespace());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        secrets
            .patch(&format!("{name}-kubeconfig"), &params, &Patch::Apply(secret))
            .await
            .map_err(|source| CapiClusterError::Refused { kind: "Secret", source: Box::new(source) })?;

        let externally_managed = (owner == ControlPlaneOwner::External).to_string();
        self.apply(
            STUB_CONTROL_PLANE,
            name,
            json!({ "annotations": { EXTERNALLY_MANAGED_ANNOTATION: externally_managed } }),
            json!({}),
        )
        .await?;
        self.apply(REMOTE_CLUSTER, name, json!({}), json!({})).await?;
        let port: u16 =
            workload.server().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        let reference =
            |kind: ThirdPartyKind| json!({ "apiGroup": kind.group, "kind": kind.kind, "name": name });
        let spec = json!({
            "controlPlaneEndpoint": { "host": "127.0.0.1", "port": port },
            "controlPlaneRef": reference(STUB_CONTROL_PLANE),
            "infrastructureRef": reference(REMOTE_CLUSTER),
        });
        self.apply(CLUSTER, name, json!({}), spec).await?;
        let clusters = CLUSTER.in_namespace(&self.management().admin(), self.namespace());
        let connected = |cluster: &DynamicObject| {
            let conditions = cluster.data["status"]["conditions"].as_array();
            conditions.is_some_and(|conditions| {
                conditions.iter().any(|it| it["type"] == "RemoteConnectionProbe" && it["status"] == "True")
            }) && cluster.data["status"]["initialization"]["infrastructureProvisioned"] == true
                && cluster.data["status"]["initialization"]["controlPlaneInitialized"] == true
        };
        Ok(wait::until_present(&clusters, name, "to be connected", CONNECTED_WITHIN, connected).await?)
    }

    async fn apply(
        &self,
        kind: ThirdPartyKind,
        name: &str,
        metadata: Value,
        spec: Value,
    ) -> Result<DynamicObject, CapiClusterError> {
        let mut object = json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec });
        object["metadata"]["name"] = json!(name);
        let api = kind.in_namespace(&self.management().admin(), self.namespace());
        api.patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object))
            .await
            .map_err(|source| CapiClusterError::Refused { kind: kind.kind, source: Box::new(source) })
    }
}
