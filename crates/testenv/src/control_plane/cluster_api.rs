//! Cluster API's core provider as a process outside the cluster: its CRDs, webhooks and roles, configured for
//! loopback.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::kubeconfig::base64;
use crate::manifests::{self, Applier, ManifestError};

/// The namespace of its `ServiceAccount`; the manifests have `system`, which kustomize would replace.
const NAMESPACE: &str = "capi-system";
/// The timeout: sixteen CRDs of up to 350 KB on a busy machine.
const ESTABLISHED_WITHIN: Duration = Duration::from_mins(1);
/// The validity of the token: longer than a control plane runs.
const TOKEN_SECONDS: i64 = 30 * 24 * 3600;

/// The address of the webhooks, and the CA that signs for them.
pub(crate) struct Webhooks<'a> {
    pub(crate) port: u16,
    pub(crate) authority: &'a str,
}

impl Webhooks<'_> {
    fn client_config(&self, path: &str) -> Value {
        let url = format!("https://127.0.0.1:{}{path}", self.port);
        json!({ "url": url, "caBundle": base64(self.authority.as_bytes()) })
    }
}

/// Applies the CRDs, converted by the webhook at `webhooks`, the kubeadm bootstrap CRD at its real schema, and the
/// CRDs of our own provider stand-ins.
pub(crate) async fn install_crds(
    client: &Client,
    assets: &Path,
    stand_ins: &[Value],
    webhooks: &Webhooks<'_>,
) -> Result<(), ManifestError> {
    let mut crds = manifests::read(&assets.join("crds"))?;
    for crd in &mut crds {
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": webhooks.client_config("/convert") },
        });
    }
    for mut crd in manifests::read(&assets.join("kubeadm-crds"))? {
        // No kubeadm provider runs here, so there is no conversion; only the schema matters. The provider's own
        // release sets this label, by which Cluster API finds the version to use.
        crd["spec"]["conversion"] = json!({ "strategy": "None" });
        crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] = json!("v1beta2");
        crds.push(crd);
    }
    crds.extend_from_slice(stand_ins);
    manifests::apply_crds(client, &crds, ESTABLISHED_WITHIN).await
}

/// Applies its namespace, `ServiceAccount` and roles, and returns a token of the `ServiceAccount`.
pub(crate) async fn install_identity(client: &Client, assets: &Path) -> Result<String, ManifestError> {
    let mut documents = vec![json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
    })];
    for mut document in manifests::read(&assets.join("rbac"))? {
        // The subject of the binding and the objects have a namespace that kustomize would replace.
        if document["kind"] != "ClusterRole" && document["kind"] != "ClusterRoleBinding" {
            document["metadata"]["namespace"] = json!(NAMESPACE);
        }
        if let Some(subjects) = document.get_mut("subjects").and_then(Value::as_array_mut) {
            for subject in subjects {
                subject["namespace"] = json!(NAMESPACE);
            }
        }
        documents.push(document);
    }
    Applier::new(client.clone()).apply_all(&documents, NAMESPACE).await?;
    request_token(client, NAMESPACE, "manager", None).await
}

/// Registers the webhooks. Must be called after the process serves them; otherwise every write to Cluster API's
/// kinds fails.
pub(crate) async fn install_webhooks(
    client: &Client,
    assets: &Path,
    webhooks: &Webhooks<'_>,
) -> Result<(), ManifestError> {
    let mut configurations = manifests::read(&assets.join("webhooks"))?;
    for configuration in &mut configurations {
        let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
        configuration["metadata"]["name"] = json!(format!("capi-{name}"));
        let Some(hooks) = configuration.get_mut("webhooks").and_then(Value::as_array_mut) else {
            continue;
        };
        for hook in hooks {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
            hook["clientConfig"] = webhooks.client_config(&path);
        }
    }
    Applier::new(client.clone()).apply_all(&configurations, NAMESPACE).await
}

/// A token of a `ServiceAccount`, by the API that `kubectl create token` uses. It is valid as long as the object
/// that it is bound to exists.
pub(crate) async fn request_token(
    client: &Client,
    namespace: &str,
    name: &str,
    bound_to: Option<BoundObjectReference>,
) -> Result<String, ManifestError> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            bound_object_ref: bound_to,
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let error = |source| ManifestError::Apply {
        kind: "TokenRequest".into(),
        name: format!("{namespace}/{name}"),
        source: Box::new(source),
    };
    let status = answer.map_err(error)?.status;
    Ok(status.and_then(|status| status.token).unwrap_or_default())
}
