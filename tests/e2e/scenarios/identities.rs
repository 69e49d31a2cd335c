//! The identities of the controller: in each cluster a `ServiceAccount` with the shipped roles, never an
//! administrator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::permissions::deploy;

/// The `ServiceAccount` of the controller.
const ACCOUNT: &str = "5spot-controller";
/// The aggregated role for the kinds of providers.
const PROVIDERS_ROLE: &str = "5spot-controller-providers";
/// The time limit: the controller-manager aggregates roles within a second.
const GATHERED_WITHIN: Duration = Duration::from_mins(1);

/// The identities by environment, shared by its contexts: applying an aggregated role again would empty it
/// for a moment.
static MANAGEMENT: Mutex<BTreeMap<PathBuf, Arc<OnceCell<ServiceAccountIdentity>>>> =
    Mutex::new(BTreeMap::new());

/// The 5-Spot CRD, and the controller's identity in the management cluster, with permission to read this
/// context's kubeconfigs.
pub(super) async fn management(context: &TestContext) -> anyhow::Result<ServiceAccountIdentity> {
    let installed = {
        let mut clusters = MANAGEMENT.lock().unwrap_or_else(PoisonError::into_inner);
        clusters.entry(context.directory().to_path_buf()).or_default().clone()
    };
    let identity = installed.get_or_try_init(|| install(context)).await?;
    Applier::new(context.management().admin()).apply(&kubeconfig_reader(), context.namespace()).await?;
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

async fn install(context: &TestContext) -> anyhow::Result<ServiceAccountIdentity> {
    let admin = context.management().admin();
    manifests::apply_crds(&admin, &manifests::read(&deploy("crds"))?, GATHERED_WITHIN).await?;
    let mut documents = manifests::read(&deploy("rbac"))?;
    documents.extend(manifests::read(&deploy("rbac-nodes"))?);
    let cluster = context.management();
    let identity =
        ServiceAccountIdentity::from_manifests(cluster, &documents, SYSTEM_NAMESPACE, ACCOUNT).await?;
    until_granted(&admin, "remotemachines").await?;
    Ok(identity)
}

/// Grants the controller another kind, as documented.
pub(super) async fn grant(context: &TestContext, group: &str, plural: &str) -> anyhow::Result<()> {
    let admin = context.management().admin();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": context.cluster_scoped(plural), "labels": {"5spot.finos.org/aggregate-to-controller": "true"},
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

/// An identity for this context in the workload cluster, with the shipped role for Nodes.
pub(super) async fn workload(context: &TestContext, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    for_nodes(context.workload(), account).await
}

/// The same in another cluster, which has none of the Nodes.
pub(super) async fn other_cluster(
    context: &TestContext,
    account: &str,
) -> anyhow::Result<ServiceAccountIdentity> {
    for_nodes(context.management(), account).await
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
    let shipped = manifests::read(&deploy("rbac-nodes/nodes.yaml"))?;
    ensure!(!shipped.is_empty(), "there is no role for Nodes");
    documents.extend(shipped.into_iter().map(|document| bound_to(document, account)));
    Ok(ServiceAccountIdentity::from_manifests(cluster, &documents, SYSTEM_NAMESPACE, account).await?)
}

/// Allows an account of the workload cluster to change Nodes, or only to read them, and waits until that is
/// in effect.
pub(super) async fn allow_node_writes(
    context: &TestContext,
    account: &str,
    is_allowed: bool,
) -> anyhow::Result<()> {
    let (admin, reader) = (context.workload().admin(), format!("5spot-nodes-readonly-{account}"));
    let mut applier = Applier::new(admin.clone());
    let mut shipped = manifests::read(&deploy("rbac-nodes/nodes.yaml"))?;
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

/// Revokes or restores all rights of an account of the workload cluster, and waits until that is in effect.
pub(super) async fn allow(context: &TestContext, account: &str, is_allowed: bool) -> anyhow::Result<()> {
    let admin = context.workload().admin();
    let mut applier = Applier::new(admin.clone());
    let mut shipped = manifests::read(&deploy("rbac-nodes/nodes.yaml"))?;
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

/// An authorizer gets bindings by watch, so the effect is polled.
async fn until_answered(admin: &Client, account: &str, is_allowed: bool) -> anyhow::Result<()> {
    let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
    let user = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{account}");
    let question = json!({
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": {"verb": "patch", "version": "v1", "resource": "nodes"}},
    });
    let question: SubjectAccessReview = serde_json::from_value(question)?;
    let polled = async {
        loop {
            let answer = reviews.create(&PostParams::default(), &question).await?;
            if answer.status.is_some_and(|status| status.allowed == is_allowed) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(GATHERED_WITHIN, polled).await?
}

/// Changes a binding to another account; leaves a role unchanged.
fn bound_to(mut document: Value, account: &str) -> Value {
    if document["subjects"].is_array() {
        let name = format!("{}-{account}", document["metadata"]["name"].as_str().unwrap_or_default());
        document["metadata"]["name"] = name.into();
        document["subjects"] =
            json!([{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}]);
    }
    document
}
