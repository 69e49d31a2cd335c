//! A proxy that simulates an older Cluster API: v1beta2 does not exist, and all other requests are forwarded.

use std::net::{Ipv4Addr, SocketAddr};

use five_spot_apiserver::{BoxError, HttpServer, ResponseBody, serve};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

/// The hidden path.
const HIDDEN: &str = "/apis/cluster.x-k8s.io/v1beta2";

/// The proxy, which is stopped on drop.
pub(super) struct OldClusterApi {
    server: HttpServer,
}

impl OldClusterApi {
    /// Forwards requests to the server of a kubeconfig, with its credentials.
    pub(super) async fn start(kubeconfig: &str) -> anyhow::Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        // A watch may have no events for any time.
        config.read_timeout = None;
        let client = Client::try_from(config)?;
        let service = tower::service_fn(move |request| answer(client.clone(), request));
        let server = serve(service, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        Ok(Self { server })
    }

    /// The address for a client, instead of that of the API server.
    pub(super) fn server(&self) -> String {
        format!("http://{}", self.server.address())
    }
}

async fn answer<B>(client: Client, request: Request<B>) -> Result<Response<ResponseBody>, BoxError>
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if request.uri().path().starts_with(HIDDEN) {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "NotFound",
            "message": "the server could not find the requested resource", "code": 404,
        });
        let body = Full::new(status.to_string().into()).map_err(|never| match never {});
        let answer = Response::builder()
            .status(StatusCode::NOT_FOUND)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.boxed_unsync())?;
        return Ok(answer);
    }
    let (mut head, body) = request.into_parts();
    // The host of this proxy, not of the API server.
    head.headers.remove(header::HOST);
    let body = body.collect().await.map_err(Into::into)?.to_bytes().to_vec();
    let answer = client.send(Request::from_parts(head, Body::from(body))).await?;
    Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
}
