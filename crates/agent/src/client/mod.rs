//! A small Kubernetes client: it can list and watch one ConfigMap and patch one Node, and nothing else. A general client
//! would need several times the memory, on every desk.
//!
//! Every request uses a connection of its own and reads token and certificate authority again, so that a token that was
//! rotated and an API server that was replaced need no further care.

mod access;
mod connect;
mod error;
mod lines;
mod objects;

pub use access::{AccessError, ClusterAccess, SERVICE_ACCOUNT_FOLDER};
pub use error::ClientError;
pub use lines::Lines;
pub use objects::{ConfigMap, ListedConfigMap, Metadata, WatchEvent, parse_watch_event};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use std::time::Duration;

/// The name of this program in the API server's audit log.
const USER_AGENT: &str = concat!("5spot-reclaim-agent/", env!("CARGO_PKG_VERSION"));

/// The field manager of the annotations.
const FIELD_MANAGER: &str = "5spot-reclaim-agent";

/// The time that a request may take up to the head of its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer that is read. A ConfigMap has at most 1 MiB, and JSON may need six bytes for one.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The time after which the API server ends a watch.
const WATCH_SECONDS: u32 = 290;

/// A client of one cluster.
#[derive(Clone, Debug)]
pub struct Client {
    access: ClusterAccess,
}

impl Client {
    /// A client that uses `access`.
    pub fn new(access: ClusterAccess) -> Self {
        Self { access }
    }

    /// Reads the ConfigMap `name`, by a list, whose version a watch can continue from.
    pub async fn list_config_map(&self, namespace: &str, name: &str) -> Result<ListedConfigMap, ClientError> {
        let path = format!("{}?fieldSelector=metadata.name%3D{name}", config_maps(namespace));
        let body = self.request(Method::GET, &path, "application/json", Bytes::new()).await?;
        objects::parse_list(&body).map_err(ClientError::Malformed)
    }

    /// Watches the ConfigMap `name` from `version` on. Returns the lines of the answer, one event each.
    pub async fn watch_config_map(
        &self,
        namespace: &str,
        name: &str,
        version: &str,
    ) -> Result<Lines, ClientError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3D{name}\
             &resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}",
            config_maps(namespace)
        );
        let response = self.send(Method::GET, &path, "application/json", Bytes::new()).await?;
        Ok(Lines::new(successful(response).await?.into_body()))
    }

    /// Applies a JSON patch to the Node `name`.
    pub async fn patch_node(&self, name: &str, body: Vec<u8>) -> Result<(), ClientError> {
        let path = format!("/api/v1/nodes/{name}?fieldManager={FIELD_MANAGER}");
        self.request(Method::PATCH, &path, "application/json-patch+json", body.into()).await.map(|_| ())
    }

    /// Sends a request and reads its whole answer.
    async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Bytes, ClientError> {
        let response = successful(self.send(method, path, content_type, body).await?).await?;
        read(response.into_body()).await
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let token = self.access.token()?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.access.authority())
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::new(body))
            .map_err(|error| ClientError::Request(error.to_string()))?;
        let answer = async {
            let mut connection = connect::connect(&self.access).await?;
            connection.send_request(request).await.map_err(ClientError::Http)
        };
        tokio::time::timeout(REQUEST_TIMEOUT, answer)
            .await
            .map_err(|_| ClientError::Timeout(REQUEST_TIMEOUT))?
    }
}

fn config_maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Turns an answer that says no into an error.
async fn successful(response: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
    let code = response.status();
    if code == StatusCode::OK {
        return Ok(response);
    }
    let body = read(response.into_body()).await.unwrap_or_default();
    Err(objects::parse_status(code, &body))
}

async fn read(body: Incoming) -> Result<Bytes, ClientError> {
    let collected = Limited::new(body, MAX_BODY_BYTES).collect();
    let collected = tokio::time::timeout(REQUEST_TIMEOUT, collected)
        .await
        .map_err(|_| ClientError::Timeout(REQUEST_TIMEOUT))?;
    Ok(collected.map_err(|error| ClientError::Body(error.to_string()))?.to_bytes())
}

#[cfg(test)]
mod tests;
