//! The identities of the controller: in each cluster a `ServiceAccount` with the roles that we
//! ship, never an administrator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::wait;
use five_spot_testenv::world::Scene;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::permissions::deploy;

/// The `ServiceAccount` of the controller.
const ACCOUNT: &str = "5spot-controller";
/// The role that gathers those for the kinds of providers.
const PROVIDERS_ROLE: &str = "5spot-controller-providers";
/// The controller-manager gathers within a second.
const GATHERED_WITHIN: Duration = Duration::from_mins(1);

/// By environment, the same for all its scenes: applying an aggregated role again would empty it for a moment.
static MANAGEMENT: Mutex<BTreeMap<PathBuf, Arc<OnceCell<ServiceAccountIdentity>>>> =
    Mutex::new(BTreeMap::new());

/// Our CRD, and the controller's identity in the management cluster, allowed to read this scene's kubeconfigs.
pub(super) async fn management(scene: &Scene) -> anyhow::Result<ServiceAccountIdentity> {
    let installed = {
        let mut worlds = MANAGEMENT.lock().unwrap_or_else(PoisonError::into_inner);
        worlds.entry(scene.directory().to_path_buf()).or_default().clone()
    };
    let identity = installed.get_or_try_init(|| install(scene)).await?;
    Applier::new(scene.management().admin()).apply(&kubeconfig_reader(), scene.namespace()).await?;
    Ok(identity.clone())
}

/// The role that the documentation recommends for namespaces with kubeconfigs.
pub(crate) fn kubeconfig_reader() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "5spot-kubeconfig-reader"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "5spot-kubeconfig-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE}],
    })
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

/// The name of the controller's user in the management cluster.
pub(super) fn controller_user() -> String {
    format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNT}")
}

/// An identity of this scene alone in the workload cluster, with the role for Nodes that we ship.
pub(super) async fn workload(scene: &Scene, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    for_nodes(scene.workload(), account).await
}

/// The same in another cluster, which has none of our Nodes.
pub(super) async fn other_cluster(scene: &Scene, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    for_nodes(scene.management(), account).await
}

async fn for_nodes(cluster: &Cluster, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    let account_object = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": account, "namespace": SYSTEM_NAMESPACE},
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE},
    });
    let mut documents = vec![namespace, account_object];
    let shipped = manifests::read(&deploy("rbac/nodes.yaml"))?;
    ensure!(!shipped.is_empty(), "there is no role for Nodes");
    documents.extend(shipped.into_iter().map(|document| bound_to(document, account)));
    Ok(ServiceAccountIdentity::from_manifests(cluster, &documents, SYSTEM_NAMESPACE, account).await?)
}

/// Lets an account of the workload cluster change Nodes, or only read them, and waits until the server knows.
pub(super) async fn allow_node_writes(scene: &Scene, account: &str, is_allowed: bool) -> anyhow::Result<()> {
    let (admin, reader) = (scene.workload().admin(), format!("5spot-nodes-readonly-{account}"));
    let mut applier = Applier::new(admin.clone());
    let mut shipped = manifests::read(&deploy("rbac/nodes.yaml"))?;
    let writer = format!("5spot-nodes-{account}");
    let superseded = if is_allowed {
        shipped.retain(|document| document["kind"] == "ClusterRoleBinding");
        for document in shipped {
            applier.apply(&bound_to(document, account), "").await?;
        }
        reader
    } else {
        shipped.retain(|document| document["kind"] == "ClusterRole");
        for mut role in shipped {
            role["metadata"]["name"] = reader.clone().into();
            let rules = role["rules"].as_array_mut().into_iter().flatten();
            rules.filter(|rule| rule["resources"] == json!(["nodes"])).for_each(|rule| {
                rule["verbs"] = json!(["get", "list", "watch"]);
            });
            applier.apply(&role, "").await?;
        }
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": reader},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": reader},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
        });
        applier.apply(&binding, "").await?;
        writer
    };
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    if bindings.get_opt(&superseded).await?.is_some() {
        bindings.delete(&superseded, &DeleteParams::default()).await?;
    }
    until_answered(&admin, account, is_allowed).await
}

/// Takes everything from an account of the workload cluster, or gives it back, and waits until the server knows.
pub(super) async fn allow(scene: &Scene, account: &str, is_allowed: bool) -> anyhow::Result<()> {
    let admin = scene.workload().admin();
    let mut applier = Applier::new(admin.clone());
    let mut shipped = manifests::read(&deploy("rbac/nodes.yaml"))?;
    shipped.retain(|document| document["kind"] == "ClusterRoleBinding");
    ensure!(!shipped.is_empty(), "there is no binding for Nodes");
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    for document in shipped {
        let document = bound_to(document, account);
        if is_allowed {
            applier.apply(&document, "").await?;
        } else {
            let name = document["metadata"]["name"].as_str().unwrap_or_default();
            bindings.delete(name, &DeleteParams::default()).await?;
        }
    }
    until_answered(&admin, account, is_allowed).await
}

/// An authorizer learns of bindings by watch, and tells nobody when it has.
async fn until_answered(admin: &Client, account: &str, is_allowed: bool) -> anyhow::Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
    let user = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{account}");
    let question = json!({
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": {"verb": "patch", "version": "v1", "resource": "nodes"}},
    });
    let question: SubjectAccessReview = serde_json::from_value(question)?;
    let asked = async {
        loop {
            let answer = reviews.create(&PostParams::default(), &question).await?;
            if answer.status.is_some_and(|status| status.allowed == is_allowed) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(GATHERED_WITHIN, asked).await?
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
