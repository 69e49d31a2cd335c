//! The objects that are created.

use super::KubeconfigFailure;
use super::admin::Admin;
use serde_json::{Value, json};

/// The namespace of the identity in the workload cluster.
pub(super) const NAMESPACE: &str = five_spot_api::names::SYSTEM_NAMESPACE;
/// The identity.
pub(super) const ACCOUNT: &str = "5spot-controller";
/// The key of the Secret, the default of `kubeconfigSecretRef`.
pub(super) const KEY: &str = "value";

/// The namespace with the Pod Security level that is shipped for clusters without agents.
const SHIPPED_NAMESPACE: &str = include_str!("../../../../deploy/base/pod-security.yaml");

/// The shipped manifests.
const SHIPPED: [&str; 2] = [
    include_str!("../../../../deploy/workload-cluster/service-account.yaml"),
    include_str!("../../../../deploy/rbac-nodes/nodes.yaml"),
];

/// The namespace of the identity. It is created if it does not exist, and left alone if it does: where agents run, it has another
/// level.
pub(super) fn namespace() -> Result<Value, KubeconfigFailure> {
    serde_saphyr::from_str(SHIPPED_NAMESPACE).map_err(unreadable)
}

/// The other objects of the workload cluster, in the order in which they are applied.
pub(super) fn workload() -> Result<Vec<Value>, KubeconfigFailure> {
    let mut documents = Vec::new();
    for text in SHIPPED {
        let more: Vec<Value> = serde_saphyr::from_multiple(text).map_err(unreadable)?;
        documents.extend(more);
    }
    Ok(documents)
}

fn unreadable(error: impl std::fmt::Display) -> KubeconfigFailure {
    KubeconfigFailure {
        step: "read the manifests in this program".into(),
        cause: error.to_string(),
        fix: "Report this error".into(),
    }
}

/// A kubeconfig with a token.
pub(super) fn kubeconfig(cluster: &str, admin: &Admin, token: &str) -> String {
    let mut server = json!({"server": admin.server});
    if let Some(authority) = &admin.certificate_authority {
        server["certificate-authority-data"] = authority.as_str().into();
    }
    if let Some(name) = &admin.tls_server_name {
        server["tls-server-name"] = name.as_str().into();
    }
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": ACCOUNT}}],
        "current-context": cluster,
    });
    // JSON is YAML.
    kubeconfig.to_string()
}

/// The Secret with the kubeconfig.
pub(super) fn secret(namespace: &str, name: &str, cluster: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "type": "Opaque",
        "stringData": {KEY: kubeconfig},
    })
}

/// The permission of the controller to read the Secrets of a namespace, as in docs/install.md.
pub(super) fn reader(namespace: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "5spot-kubeconfig-reader", "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "5spot-kubeconfig-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_and_its_roles_are_those_that_are_shipped() {
        let namespace = namespace().expect("a manifest");
        assert_eq!(
            (&namespace["kind"], &namespace["metadata"]["name"]),
            (&json!("Namespace"), &json!(NAMESPACE))
        );
        for mode in ["enforce", "warn", "audit"] {
            let label = format!("pod-security.kubernetes.io/{mode}");
            assert_eq!(namespace["metadata"]["labels"][&label], "restricted", "{mode}");
        }
        let documents = workload().expect("manifests");
        let kinds: Vec<&str> = documents.iter().filter_map(|one| one["kind"].as_str()).collect();
        let expected = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
        assert_eq!(kinds, expected);
        for binding in documents.iter().filter(|one| one["subjects"].is_array()) {
            assert_eq!(binding["subjects"][0]["name"], ACCOUNT);
            assert_eq!(binding["subjects"][0]["namespace"], NAMESPACE);
        }
    }
}
