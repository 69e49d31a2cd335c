//! Kubeconfigs: the address of a cluster and the identity of a client, for the harness, `kubectl`, the
//! components and the Secret that Cluster API reads.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::json;

use crate::pki::Identity;

/// The identity of a client.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// A client certificate.
    Certificate(Identity),
    /// A bearer token, such as a `ServiceAccount`'s.
    Token(String),
    /// A file with a token, which may be replaced, as in a pod.
    TokenFile(PathBuf),
}

/// The reason why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum TestClientError {
    /// The kubeconfig could not be read.
    #[error("failed to read the kubeconfig: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// The client could not be created.
    #[error("failed to create a client: {0}")]
    Client(#[from] kube::Error),
    /// The user agent is not a header value.
    #[error("{0:?} cannot be a user agent")]
    UserAgent(String),
}

/// A kubeconfig as text. It is JSON, which is also valid YAML.
pub fn render(server: &str, authority: &str, credentials: &Credentials) -> String {
    let user = match credentials {
        Credentials::Certificate(identity) => json!({
            "client-certificate-data": base64(identity.certificate.as_bytes()),
            "client-key-data": base64(identity.key.as_bytes()),
        }),
        Credentials::Token(token) => json!({ "token": token }),
        Credentials::TokenFile(path) => json!({ "tokenFile": path }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "5spot",
            "cluster": { "server": server, "certificate-authority-data": base64(authority.as_bytes()) },
        }],
        "users": [{ "name": "5spot", "user": user }],
        "contexts": [{ "name": "5spot", "context": { "cluster": "5spot", "user": "5spot" } }],
        "current-context": "5spot",
    });
    format!("{config:#}\n")
}

/// A client from a kubeconfig's text. The user agent distinguishes clients in the audit log.
pub async fn client(kubeconfig: &str, user_agent: &str) -> Result<kube::Client, TestClientError> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // kube's own retry would hide the answers that tests check, and delay a blocked eviction for minutes.
    config.default_retry = false;
    let agent = user_agent.parse().map_err(|_| TestClientError::UserAgent(user_agent.into()))?;
    config.headers.push((http::header::USER_AGENT, agent));
    Ok(kube::Client::try_from(config)?)
}

/// Standard base64 with padding, as kubeconfigs and webhooks carry certificates.
pub(crate) fn base64(bytes: &[u8]) -> String {
    // Kubernetes itself writes bytes into JSON as a `ByteString`, whose text is used here.
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()))
        .ok()
        .and_then(|value| value.as_str().map(String::from))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_can_be_read_back() {
        let text = render("https://127.0.0.1:6443", "authority", &Credentials::Token("secret".into()));
        let kubeconfig = Kubeconfig::from_yaml(&text).expect("readable");
        assert_eq!(kubeconfig.current_context.as_deref(), Some("5spot"));
        let cluster = kubeconfig.clusters[0].cluster.as_ref().expect("a cluster");
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("YXV0aG9yaXR5"));
    }
}
