//! A web server that is not an API server: it responds to every request with 404.

use std::net::{Ipv4Addr, SocketAddr};

use five_spot_apiserver::{BoxError, HttpServer, ResponseBody, serve};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

/// The server, which is stopped on drop.
pub(super) struct NotAnApi {
    server: HttpServer,
}

impl NotAnApi {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let server = serve(tower::service_fn(answer), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        Ok(Self { server })
    }

    /// A kubeconfig for this server.
    pub(super) fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.server.address());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "w",
            "clusters": [{"name": "w", "cluster": {"server": server}}],
            "users": [{"name": "w", "user": {"token": "none"}}],
            "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        })
        .to_string()
    }
}

async fn answer<B>(_: Request<B>) -> Result<Response<ResponseBody>, BoxError> {
    let body = Full::new("404 page not found\n".into()).map_err(|never| match never {});
    Ok(Response::builder()
        .status(StatusCode::NOT_FOUND)
        .header(header::CONTENT_TYPE, "text/plain")
        .body(body.boxed_unsync())?)
}
