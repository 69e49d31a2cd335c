//! The API over HTTP, for `kubectl` and other programs.

use super::guard::Guarded;
use super::service::{BoxError, ResponseBody};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::Service;

/// A listening API server, which is stopped on drop.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for this server.
    pub fn kubeconfig(&self) -> String {
        let name = "5spot-sandbox";
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "users": [{"name": name, "user": {}}],
        })
        .to_string()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves `service` on `address`; port 0 selects any free port.
pub async fn serve<S>(service: S, address: SocketAddr) -> std::io::Result<HttpServer>
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = BoxError>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let accepting = tokio::spawn(accept_connections(listener, service));
    Ok(HttpServer { address, accepting })
}

async fn accept_connections<S>(listener: TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = BoxError>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    // The connections are in a `JoinSet`, so that they end with the server.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Watch events are small: without this each waits up to 40 ms for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(Guarded::new(service.clone()));
        connections.spawn(async move {
            // A client may disconnect in the middle of a response.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}
