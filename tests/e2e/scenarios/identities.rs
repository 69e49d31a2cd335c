//! Who the controller is: in the management cluster and in the workload cluster a `ServiceAccount` with the roles that we
//! ship, never an administrator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::wait;
use five_spot_testenv::world::Scene;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The `ServiceAccount` of the controller.
const ACCOUNT: &str = "5spot-controller";
/// The role that gathers those for the kinds of providers.
const PROVIDERS_ROLE: &str = "5spot-controller-providers";
/// The controller-manager gathers within a second.
const GATHERED_WITHIN: Duration = Duration::from_mins(1);

/// The same for all scenes: applying an aggregated role again would empty it for a moment.
static MANAGEMENT: OnceCell<ServiceAccountIdentity> = OnceCell::const_new();

/// Our CRD, and the controller's identity in the management cluster, allowed to read this scene's kubeconfigs.
pub(super) async fn management(scene: &Scene) -> anyhow::Result<ServiceAccountIdentity> {
    let identity = MANAGEMENT.get_or_try_init(|| install(scene)).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "5spot-kubeconfig-reader", "namespace": scene.namespace()},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "5spot-kubeconfig-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
    });
    Applier::new(scene.management().admin()).apply(&binding, scene.namespace()).await?;
    Ok(identity.clone())
}

async fn install(scene: &Scene) -> anyhow::Result<ServiceAccountIdentity> {
    let admin = scene.management().admin();
    manifests::apply_crds(&admin, &manifests::read(&deploy("crds"))?, GATHERED_WITHIN).await?;
    let identity =
        ServiceAccountIdentity::from_path(scene.management(), &deploy("rbac"), SYSTEM_NAMESPACE, ACCOUNT)
            .await?;
    until_granted(&admin, "remotemachines").await?;
    Ok(identity)
}

/// Lets the controller handle one more kind, as the documentation says.
pub(super) async fn grant(scene: &Scene, group: &str, plural: &str) -> anyhow::Result<()> {
    let admin = scene.management().admin();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": scene.cluster_scoped(plural), "labels": {"5spot.finos.org/aggregate-to-controller": "true"},
        },
        "rules": [{
            "apiGroups": [group], "resources": [plural],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }],
    });
    Applier::new(admin.clone()).apply(&role, "").await?;
    until_granted(&admin, plural).await
}

async fn until_granted(admin: &Client, plural: &str) -> anyhow::Result<()> {
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    let has = |role: &ClusterRole| {
        let mut granted = role.rules.iter().flatten().flat_map(|rule| rule.resources.iter().flatten());
        granted.any(|resource| resource == plural)
    };
    wait::until_present(&roles, PROVIDERS_ROLE, "to grant it", GATHERED_WITHIN, has).await?;
    Ok(())
}

/// An identity of this scene alone in the workload cluster, with the role for Nodes that we ship.
pub(super) async fn workload(scene: &Scene, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    let account_object = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": account, "namespace": SYSTEM_NAMESPACE},
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE},
    });
    let mut documents = vec![namespace, account_object];
    let shipped = manifests::read(&deploy("rbac").join("nodes.yaml"))?;
    ensure!(!shipped.is_empty(), "there is no role for Nodes");
    documents.extend(shipped.into_iter().map(|document| bound_to(document, account)));
    let cluster = scene.workload();
    Ok(ServiceAccountIdentity::from_manifests(cluster, &documents, SYSTEM_NAMESPACE, account).await?)
}

/// A binding, for another account; a role as it is.
fn bound_to(mut document: Value, account: &str) -> Value {
    if document["subjects"].is_array() {
        let name = format!("{}-{account}", document["metadata"]["name"].as_str().unwrap_or_default());
        document["metadata"]["name"] = name.into();
        document["subjects"] =
            json!([{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}]);
    }
    document
}

fn deploy(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(part)
}
