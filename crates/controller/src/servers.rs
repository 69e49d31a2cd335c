//! What the controller serves over HTTP: its metrics, and how it is.

use crate::health::Health;
use crate::metrics::{CONTENT_TYPE, Metrics};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long it may take to say how the controller is. The kubelet waits a second itself, unless it is told otherwise.
const ANSWER: Duration = Duration::from_millis(800);

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Someone else does already.
    #[error("port {port} is in use: choose another with {flag}")]
    InUse {
        /// The port.
        port: u16,
        /// The flag that it comes from.
        flag: &'static str,
    },
    /// Something else is wrong.
    #[error("failed to listen on port {port} ({flag}): {source}")]
    Other {
        /// The port.
        port: u16,
        /// The flag that it comes from.
        flag: &'static str,
        /// What.
        source: std::io::Error,
    },
}

/// Listens on a port of every address of this machine; 0 is any port that is free.
pub async fn listen(port: u16, flag: &'static str) -> Result<TcpListener, PortError> {
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let bound = match TcpListener::bind(everywhere).await {
        // There are machines without IPv6.
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        bound => bound,
    };
    bound.map_err(|source| {
        if source.kind() == ErrorKind::AddrInUse {
            PortError::InUse { port, flag }
        } else {
            PortError::Other { port, flag, source }
        }
    })
}

/// Serves `/metrics` for as long as it is polled.
pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let page = move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.page()) };
    axum::serve(listener, Router::new().route("/metrics", get(page))).await
}

/// Serves `/health` and `/ready`, also under the names that Kubernetes gives them, for as long as it is polled.
pub async fn serve_health(listener: TcpListener, health: Arc<Health>) -> std::io::Result<()> {
    let (alive, ready) = (health.clone(), health);
    let alive = get(move || answer(alive, |health| (health.ailments(), Vec::new())));
    let ready = get(move || answer(ready, |health| (health.obstacles(), health.remarks())));
    let router = Router::new()
        .route("/health", alive.clone())
        .route("/healthz", alive)
        .route("/ready", ready.clone())
        .route("/readyz", ready);
    axum::serve(listener, router).await
}

/// What is wrong, and what is worth knowing besides.
type Report = (Vec<String>, Vec<String>);

/// Asks on a thread of its own: whatever is stuck must not stick to the one that serves.
async fn answer(health: Arc<Health>, ask: fn(&Health) -> Report) -> (StatusCode, String) {
    let (problems, remarks) = match timeout(ANSWER, spawn_blocking(move || ask(&health))).await {
        Ok(Ok(report)) => report,
        Ok(Err(_)) | Err(_) => (vec!["nobody can tell: something is locked for ever".to_owned()], Vec::new()),
    };
    let (status, mut lines) = if problems.is_empty() {
        (StatusCode::OK, vec!["ok".to_owned()])
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems)
    };
    lines.extend(remarks.into_iter().map(|remark| format!("remark: {remark}")));
    (status, lines.join("\n") + "\n")
}
