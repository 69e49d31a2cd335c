//! Connections over the network: the address is found, checked and connected to in one step, each time.
//!
//! `kube`'s own connector resolves names by itself, so that a name could be checked as one address and connected to at
//! another. Its other layers (base address, credentials, TLS) are used as they are; what it would trace at error level
//! without saying which cluster it was about is left out.

use super::address::AddressRules;
use super::limits::{ADDRESSES, CONNECT_DEADLINE, CONNECTIONS, IDLE_CONNECTIONS};
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// A service that sends requests to the cluster of a configuration.
pub(super) type NetworkService = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// What a client may connect to, and how often at the same time.
#[derive(Clone, Debug)]
pub struct ConnectRules {
    addresses: AddressRules,
    /// Each has to have one to spare: that of the cluster, and that of all workload clusters together.
    connections: Vec<Arc<Semaphore>>,
}

impl ConnectRules {
    /// For the management cluster: anywhere, and as often as needed.
    pub fn management() -> Self {
        Self { addresses: AddressRules::Any, connections: Vec::new() }
    }

    /// For one workload cluster, which shares `connections` with the others.
    pub fn workload(addresses: AddressRules, connections: Arc<Semaphore>) -> Self {
        Self { addresses, connections: vec![Arc::new(Semaphore::new(CONNECTIONS)), connections] }
    }
}

/// Makes the service. A proxy is not supported: whether an address is permitted can only be told by whoever connects.
pub(super) fn service(config: &Config, rules: ConnectRules) -> Result<NetworkService, kube::Error> {
    if config.proxy_url.is_some() {
        // In kube's own words.
        ClientBuilder::try_from(config.clone())?;
    }
    let connector = config.rustls_https_connector_with_connector(Connector { rules })?;
    let client: Client<_, Body> =
        Client::builder(TokioExecutor::new()).pool_max_idle_per_host(IDLE_CONNECTIONS).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(BoxCloneSyncService::new(service.map_err(Into::into)))
}

/// Opens TCP connections to permitted addresses.
#[derive(Clone, Debug)]
struct Connector {
    rules: ConnectRules,
}

/// Why there is no connection. Shown in the log of the controller, never to a tenant.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    #[error("the URL of the server has no host")]
    NoHost,
    #[error("failed to resolve {host}")]
    Resolve { host: String, source: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error(
        "{host} leads to {address}, where no workload cluster may be: name it with --workload-cidr if one is"
    )]
    Denied { host: String, address: SocketAddr },
    #[error("failed to connect to {address}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("too many connections to workload clusters are open")]
    TooManyConnections,
    #[error("no connection to {host} within {} s", CONNECT_DEADLINE.as_secs())]
    Deadline { host: String },
}

impl tower::Service<Uri> for Connector {
    type Response = Connection;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let rules = self.rules.clone();
        Box::pin(async move {
            let host = uri.host().ok_or(ConnectError::NoHost)?.trim_matches(['[', ']']).to_owned();
            let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
            let permits = rules.connections.iter().map(|connections| connections.clone().try_acquire_owned());
            let permits =
                permits.collect::<Result<Vec<_>, _>>().map_err(|_| ConnectError::TooManyConnections)?;
            let connecting = connect(&rules.addresses, host.clone(), port);
            let connected =
                timeout(CONNECT_DEADLINE, connecting).await.unwrap_or(Err(ConnectError::Deadline { host }));
            Ok(Connection { stream: connected?, _permits: permits })
        })
    }
}

async fn connect(
    addresses: &AddressRules,
    host: String,
    port: u16,
) -> Result<TokioIo<TcpStream>, ConnectError> {
    // A number is an address in any notation that the system's resolver knows: it comes back as a plain one.
    let found: Vec<SocketAddr> = match lookup_host((host.as_str(), port)).await {
        Ok(found) => found.take(ADDRESSES).collect(),
        Err(source) => return Err(ConnectError::Resolve { host: host.clone(), source }),
    };
    let mut last = ConnectError::NoAddress { host: host.clone() };
    for address in found {
        // One that is denied does not hide another that is permitted, nor the other way round.
        if !addresses.permits(address.ip()) {
            last = ConnectError::Denied { host: host.clone(), address };
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are written as a whole: to wait for more of them only costs time.
                let _ = stream.set_nodelay(true);
                return Ok(TokioIo::new(stream));
            }
            Err(source) => last = ConnectError::Connect { address, source },
        }
    }
    Err(last)
}

/// A connection, which counts for as long as it lives.
#[derive(Debug)]
struct Connection {
    stream: TokioIo<TcpStream>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl hyper_util::client::legacy::connect::Connection for Connection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}
