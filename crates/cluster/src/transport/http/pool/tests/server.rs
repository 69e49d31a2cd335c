//! A server on loopback with TLS, HTTP/2 or HTTP/1.1, and a relay in front of it that can freeze.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The streams that kube-apiserver permits on a connection.
const KUBE_APISERVER: u32 = 100;

/// A server that runs until it is dropped.
pub(super) struct Server {
    pub(super) config: Config,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    connections: AtomicUsize,
    requests: AtomicUsize,
    frozen: watch::Sender<bool>,
    leaving: watch::Sender<u32>,
    most_streams: u32,
}

impl Server {
    pub(super) async fn http2() -> Self {
        Self::start(&[b"h2", b"http/1.1"], KUBE_APISERVER).await
    }

    pub(super) async fn http2_with_streams(most_streams: u32) -> Self {
        Self::start(&[b"h2"], most_streams).await
    }

    pub(super) async fn http1() -> Self {
        Self::start(&[b"http/1.1"], KUBE_APISERVER).await
    }

    async fn start(protocols: &[&[u8]], most_streams: u32) -> Self {
        let (acceptor, certificate) = tls(protocols);
        let state = Arc::new(State {
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            frozen: watch::Sender::new(false),
            leaving: watch::Sender::new(0),
            most_streams,
        });
        let (server, relay) = (listen().await, listen().await);
        let address = server.local_addr().expect("an address");
        let mut config = Config::new(
            format!("https://{}", relay.local_addr().expect("an address")).parse().expect("a URL"),
        );
        config.root_cert = Some(vec![certificate]);
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(server, acceptor, state.clone()));
        tasks.spawn(forward(relay, address, state.clone()));
        Self { config, state, _tasks: tasks }
    }

    /// Connections that have agreed on TLS so far.
    pub(super) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// From now on accepts connections and does nothing else, like a stopped process.
    pub(super) fn freeze(&self) {
        self.state.frozen.send_replace(true);
    }

    pub(super) fn thaw(&self) {
        self.state.frozen.send_replace(false);
    }

    /// Shuts down all connections gracefully (GOAWAY).
    pub(super) fn leave(&self) {
        self.state.leaving.send_modify(|times| *times += 1);
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.expect("a port")
}

fn tls(protocols: &[&[u8]]) -> (TlsAcceptor, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key belongs to the certificate");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), made.cert.der().to_vec())
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), state.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            state.connections.fetch_add(1, Ordering::Relaxed);
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let mut leaving = state.leaving.subscribe();
            let most_streams = state.most_streams;
            let service = service_fn(move |request| answer(request, state.clone()));
            let stream = TokioIo::new(stream);
            // Clients may disconnect at any time.
            if is_http2 {
                let mut connection = std::pin::pin!(
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .max_concurrent_streams(most_streams)
                        .serve_connection(stream, service)
                );
                tokio::select! {
                    _ = connection.as_mut() => {}
                    _ = leaving.changed() => {
                        connection.as_mut().graceful_shutdown();
                        let _ = connection.await;
                    }
                }
            } else {
                let connection = hyper::server::conn::http1::Builder::new().serve_connection(stream, service);
                let _ = connection.await;
            }
        });
    }
}

/// A watch receives `begun` and then nothing; everything else is answered with the version of HTTP.
async fn answer(
    request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    state.requests.fetch_add(1, Ordering::Relaxed);
    if request.uri().path().contains("hang") {
        std::future::pending::<()>().await;
    }
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let text = format!("{:?}", request.version());
    Ok(Response::new(if is_watch {
        let begun = stream::once(async { Ok(Frame::data(Bytes::from("begun"))) });
        StreamBody::new(begun.chain(stream::pending())).boxed_unsync()
    } else {
        Full::new(Bytes::from(text)).boxed_unsync()
    }))
}

async fn forward(listener: TcpListener, server: SocketAddr, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let frozen = state.frozen.subscribe();
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            let (client, server) = (client.into_split(), server.into_split());
            // When one side closes, the other one is closed too.
            tokio::select! {
                () = copy(client.0, server.1, frozen.clone()) => {}
                () = copy(server.0, client.1, frozen) => {}
            }
        });
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut frozen: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(length) = from.read(&mut buffer).await else { return };
        if frozen.wait_for(|frozen| !frozen).await.is_err()
            || length == 0
            || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}
