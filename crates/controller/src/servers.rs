//! The HTTP servers of the controller: metrics and health.

use crate::health::Health;
use crate::metrics::{CONTENT_TYPE, Metrics};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::timeout;

/// The time limit of a health check. The kubelet waits a second by default.
const ANSWER: Duration = Duration::from_millis(800);

/// The time in which the head of a request has to come. A kubelet and a Prometheus send theirs at once.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);

/// The time for a whole connection, which serves one request: a page of ten thousand machines takes a second.
const CONNECTION_DEADLINE: Duration = Duration::from_secs(20);

/// Bytes of the head of a request. Those of a kubelet and a Prometheus have 300.
const HEAD_BYTES: usize = 16 << 10;

/// Connections to a port at the same time. One more closes the oldest: clients send their request as soon as they
/// are connected, and a connection without a request need not be kept. Each port has its own, so that scrapes never block probes.
const CONNECTIONS: usize = 64;

/// The time to wait after a connection could not be accepted: there is no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The error of a port that cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Another program does already.
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
        /// The error.
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
    let rendering = Rendering::new(move || metrics.page());
    let page = move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], rendering.page().await) };
    serve_connections(listener, Router::new().route("/metrics", get(page))).await
}

/// Renders a page that grows with the fleet: once at a time, however many ask, and not on the thread that serves.
#[derive(Clone)]
struct Rendering {
    render: Arc<dyn Fn() -> String + Send + Sync>,
    turn: Arc<Semaphore>,
}

impl Rendering {
    fn new(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { render: Arc::new(render), turn: Arc::new(Semaphore::new(1)) }
    }

    async fn page(&self) -> String {
        let turn = self.turn.clone().acquire_owned().await;
        let render = self.render.clone();
        // The turn ends with the rendering, also if nobody waits for the page any more.
        let rendering = spawn_blocking(move || {
            let page = render();
            drop(turn);
            page
        });
        rendering.await.unwrap_or_default()
    }
}

/// Serves `/health` and `/ready`, also under the names that Kubernetes gives them, for as long as it is polled.
pub async fn serve_health(listener: TcpListener, health: Arc<Health>) -> std::io::Result<()> {
    let (alive, ready) = (health.clone(), health);
    let alive = get(move || answer(alive, |health| (health.liveness_failures(), Vec::new())));
    let ready = get(move || {
        ready.note_readiness_request();
        answer(ready, |health| (health.obstacles(), health.remarks()))
    });
    let router = Router::new()
        .route("/health", alive.clone())
        .route("/healthz", alive)
        .route("/ready", ready.clone())
        .route("/readyz", ready);
    serve_connections(listener, router).await
}

/// Accepts connections for as long as it is polled.
async fn serve_connections(listener: TcpListener, router: Router) -> std::io::Result<()> {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= CONNECTIONS
            && let Some(oldest) = connections.pop_front()
        {
            oldest.abort();
        }
        connections.push_back(tokio::spawn(serve_one(stream, router.clone())).abort_handle());
    }
}

/// Serves one request. A client that takes too long, sends too much or goes away gets no answer.
async fn serve_one(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(CONNECTION_DEADLINE, connection).await;
}

/// The problems, and the remarks.
type Report = (Vec<String>, Vec<String>);

/// Checks the health on a thread of its own, so that a check that hangs does not block the server.
async fn answer(health: Arc<Health>, ask: fn(&Health) -> Report) -> (StatusCode, String) {
    let (problems, remarks) = match timeout(ANSWER, spawn_blocking(move || ask(&health))).await {
        Ok(Ok(report)) => report,
        Ok(Err(_)) | Err(_) => {
            (vec!["the health checks do not respond: a lock is never released".to_owned()], Vec::new())
        }
    };
    let (status, mut lines) = if problems.is_empty() {
        (StatusCode::OK, vec!["ok".to_owned()])
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems)
    };
    lines.extend(remarks.into_iter().map(|remark| format!("remark: {remark}")));
    (status, lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Instant;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn serving() -> (u16, tokio::task::JoinHandle<std::io::Result<()>>) {
        let listener = listen(0, "--health-port").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let router = Router::new().route("/health", get(|| async { "ok" }));
        (port, tokio::spawn(serve_connections(listener, router)))
    }

    async fn connect(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).await.expect("it listens")
    }

    async fn ask(mut stream: TcpStream, request: &str) -> String {
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    const REQUEST: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

    #[tokio::test]
    async fn idle_connections_do_not_block_other_clients() {
        let (port, serving) = serving().await;
        let mut idle = Vec::new();
        for _ in 0..3 * CONNECTIONS {
            idle.push(connect(port).await);
        }
        let answer = timeout(HEAD_DEADLINE, ask(connect(port).await, REQUEST)).await.expect("at once");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        serving.abort();
    }

    #[tokio::test]
    async fn metrics_are_rendered_once_at_a_time_on_another_thread() {
        let (begin, mut rendered_by) = tokio::sync::mpsc::unbounded_channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let finished = Mutex::new(finished);
        let rendering = Rendering::new(move || {
            let _ = begin.send(std::thread::current().id());
            let _ = finished.lock().expect("no panic").recv();
            "page".to_owned()
        });
        let asked = rendering.clone();
        let first = tokio::spawn(async move { asked.page().await });
        let thread = rendered_by.recv().await.expect("it is rendered");
        assert_ne!(thread, std::thread::current().id(), "this thread serves");
        // A client that hangs up, or whose connection is ended for a newer one.
        first.abort();
        assert!(first.await.expect_err("it is given up").is_cancelled());
        assert_eq!(rendering.turn.available_permits(), 0, "its page is still being rendered");
        let asked = rendering.clone();
        let second = tokio::spawn(async move { asked.page().await });
        for _ in 0..2 {
            finish.send(()).expect("it waits");
        }
        assert_eq!(second.await.expect("no panic"), "page");
        assert!(rendered_by.recv().await.is_some());
        assert_eq!(rendering.turn.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_not_waited_for() {
        let (port, serving) = serving().await;
        let began = Instant::now();
        let answer = ask(connect(port).await, "GET /health HTTP/1.1\r\nx-slow: a").await;
        assert!(!answer.contains("200 OK"), "{answer}");
        assert!(began.elapsed() < CONNECTION_DEADLINE, "{:?}", began.elapsed());
        serving.abort();
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused() {
        let (port, serving) = serving().await;
        let long = format!("GET /health HTTP/1.1\r\nx-long: {}\r\n\r\n", "a".repeat(4 * HEAD_BYTES));
        let answer = ask(connect(port).await, &long).await;
        assert!(!answer.contains("200 OK"), "{answer}");
        serving.abort();
    }
}
