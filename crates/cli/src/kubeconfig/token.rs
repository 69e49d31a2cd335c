//! The token of the identity.

use super::KubeconfigFailure;
use super::cause::cause;
use super::manifests::{ACCOUNT, NAMESPACE};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};

/// A token and its end.
pub(super) struct Token {
    pub(super) text: String,
    /// RFC 3339.
    pub(super) expires_at: String,
    /// The time until then, by the clock of this machine.
    pub(super) lifetime_seconds: i64,
}

/// Asks for a token. The API server may give it a shorter life than asked for.
pub(super) async fn request(client: &Client, seconds: i64) -> Result<Token, KubeconfigFailure> {
    let failure = |cause: String| KubeconfigFailure {
        step: format!("request a token of the ServiceAccount {NAMESPACE}/{ACCOUNT}"),
        cause,
        fix: "This needs the verb create on serviceaccounts/token in the workload cluster".into(),
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await;
    let status = answer.map_err(|error| failure(cause(&error)))?.status;
    let status = status.ok_or_else(|| failure("the answer contains none".into()))?;
    let (Some(text), Some(expires_at)) = (status.token, status.expiration_timestamp) else {
        return Err(failure("the answer contains none".into()));
    };
    let lifetime_seconds = expires_at.0.as_second() - Timestamp::now().as_second();
    Ok(Token { text, expires_at: expires_at.0.to_string(), lifetime_seconds })
}
