//! The identity under test: a `ServiceAccount` with exactly the roles that 5-Spot ships, never an
//! administrator.

use std::path::Path;

use k8s_openapi::api::authentication::v1::BoundObjectReference;
use kube::Client;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::request_token;
use crate::kubeconfig::{self, Credentials, TestClientError};
use crate::manifests::{Applier, ManifestError};

/// The reason why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum ServiceAccountError {
    /// The manifests could not be applied, or the token was refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The client could not be created.
    #[error(transparent)]
    Client(#[from] TestClientError),
}

/// A `ServiceAccount`'s token and its cluster.
#[derive(Debug, Clone)]
pub struct ServiceAccountIdentity {
    cluster: Cluster,
    namespace: String,
    name: String,
    token: String,
}

impl ServiceAccountIdentity {
    /// Applies manifests (namespaces, roles, bindings, the `ServiceAccount` itself) as the administrator, and requests
    /// a token of the `ServiceAccount` `namespace/name`.
    pub async fn from_manifests(
        cluster: &Cluster,
        documents: &[Value],
        namespace: &str,
        name: &str,
    ) -> Result<Self, ServiceAccountError> {
        Applier::new(cluster.admin()).apply_all(documents, namespace).await?;
        let token = request_token(&cluster.admin(), namespace, name, None).await?;
        Ok(Self { cluster: cluster.clone(), namespace: namespace.into(), name: name.into(), token })
    }

    /// The same account with another token, which is valid as long as a Secret of this name exists in the account's
    /// namespace. The Secret is created if it does not exist.
    pub async fn bound_to(&self, secret: &str) -> Result<Self, ServiceAccountError> {
        let admin = self.cluster.admin();
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}});
        let applied = Applier::new(admin.clone()).apply(&object, &self.namespace).await?;
        let reference = BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Secret".into()),
            name: Some(secret.into()),
            uid: applied.metadata.uid,
        };
        let token = request_token(&admin, &self.namespace, &self.name, Some(reference)).await?;
        Ok(Self { token, ..self.clone() })
    }

    /// The same account with the token of a pod of this name in the account's namespace, as a kubelet would mount it.
    /// The pod is created if it does not exist; it is never run.
    pub async fn bound_to_pod(&self, pod: &str) -> Result<Self, ServiceAccountError> {
        let admin = self.cluster.admin();
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
            "spec": {
                "serviceAccountName": self.name, "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0, "containers": [{"name": "controller", "image": "none"}],
            },
        });
        let applied = Applier::new(admin.clone()).apply(&object, &self.namespace).await?;
        let reference = BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: Some(pod.into()),
            uid: applied.metadata.uid,
        };
        let token = request_token(&admin, &self.namespace, &self.name, Some(reference)).await?;
        Ok(Self { token, ..self.clone() })
    }

    /// Its token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The user name in RBAC and in the audit log.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// A kubeconfig of this identity, with the address `server` if given.
    pub fn kubeconfig(&self, server: Option<&str>) -> String {
        self.cluster.kubeconfig_for(&Credentials::Token(self.token.clone()), server)
    }

    /// A kubeconfig with the token in this file.
    pub fn kubeconfig_by_file(&self, token: &Path) -> String {
        self.cluster.kubeconfig_for(&Credentials::TokenFile(token.to_path_buf()), None)
    }

    /// A client of this identity.
    pub async fn client(&self, user_agent: &str) -> Result<Client, ServiceAccountError> {
        Ok(kubeconfig::client(&self.kubeconfig(None), user_agent).await?)
    }

    /// A client of this identity whose connection can be interrupted: see [`crate::proxy::Proxy`].
    pub async fn client_through(
        &self,
        proxy: &crate::proxy::Proxy,
        user_agent: &str,
    ) -> Result<Client, ServiceAccountError> {
        Ok(kubeconfig::client(&self.kubeconfig(Some(&proxy.server())), user_agent).await?)
    }
}
