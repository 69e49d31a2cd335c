//! Connections over the network: the address is found, checked and connected to in one step, each time.
//!
//! `kube`'s own connector resolves names by itself, so a name could resolve to one address for the check and to another
//! for the connection. It also offers HTTP/1.1 only. Its other layers (base address, credentials) and its TLS
//! configuration are used unchanged, except that its traces at error level are left out, because they do not name the
//! cluster.

use super::NamespaceShare;
use super::address::AddressRules;
use super::limits::{ADDRESSES, CONNECT_DEADLINE, CONNECTIONS};
use super::lookup::DnsLookups;
use super::pool::{Pings, Pool, PooledBody};
use super::protocol::{LatestProtocol, Protocol};
use super::rate::Rate;
use super::throttled::Throttled;
use http::{Request, Response};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// The protocols that a server may choose from, the better one first.
const OFFERED: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A service that sends requests to the cluster of a configuration.
pub(super) type NetworkService = BoxCloneSyncService<Request<Body>, Response<PooledBody>, BoxError>;

/// The addresses and the number of connections that a client may use.
#[derive(Clone, Debug)]
pub struct ConnectRules {
    addresses: AddressRules,
    /// A connection needs a permit from each: the limits of the namespace, of the cluster, and of all workload
    /// clusters together.
    connections: Vec<Arc<Semaphore>>,
    lookups: DnsLookups,
    /// The rate at which all of them together may be read; absent if it is not limited.
    pub(super) received: Option<Rate>,
}

impl ConnectRules {
    /// For the management cluster: anywhere, and as often as needed.
    pub fn management() -> Self {
        let (connections, lookups) = (Vec::new(), DnsLookups::unlimited());
        Self { addresses: AddressRules::Any, connections, lookups, received: None }
    }

    /// For one workload cluster, which shares `connections` with the others.
    pub fn workload(addresses: AddressRules, connections: Arc<Semaphore>) -> Self {
        let connections = vec![Arc::new(Semaphore::new(CONNECTIONS)), connections];
        Self { addresses, connections, lookups: DnsLookups::unlimited(), received: None }
    }

    /// The same within the share of a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &NamespaceShare) -> Self {
        self.connections.insert(0, namespace.connections.clone());
        self.lookups = namespace.lookups.clone();
        self.received = Some(namespace.received.clone());
        self
    }
}

/// Builds the service. A proxy is not supported, because only the side that connects can check the address.
pub(super) fn service(
    config: &Config,
    rules: ConnectRules,
    latest: LatestProtocol,
) -> Result<NetworkService, kube::Error> {
    if config.proxy_url.is_some() {
        // In kube's own words.
        ClientBuilder::try_from(config.clone())?;
    }
    let pool = Pool::new(Connector::new(config, rules)?, Pings::default(), latest);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(pool);
    Ok(BoxCloneSyncService::new(service.map_err(Into::into)))
}

/// Opens connections to the server of one configuration, at permitted addresses.
#[derive(Clone)]
pub(super) struct Connector {
    rules: ConnectRules,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A connection, and its protocol.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) stream: Stream,
    pub(super) protocol: Protocol,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A failed connection. It is shown in the log of the controller, never to a tenant.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the URL of the server has no host")]
    NoHost,
    #[error("'{name}' cannot be the name of a server")]
    ServerName { name: String },
    #[error("failed to resolve {host}")]
    Resolve { host: String, source: io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error(
        "{host} has the address {address}, which is not allowed for workload clusters; to allow it, start the \
         controller with --workload-cidr"
    )]
    Denied { host: String, address: SocketAddr },
    #[error("failed to connect to {address}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the TLS handshake with {host} failed")]
    Tls { host: String, source: io::Error },
    #[error("too many connections to workload clusters are open")]
    TooManyConnections,
    #[error("no connection to {host} within {} s", CONNECT_DEADLINE.as_secs())]
    Deadline { host: String },
}

impl Connector {
    pub(super) fn new(config: &Config, rules: ConnectRules) -> Result<Self, kube::Error> {
        let url = &config.cluster_url;
        let refuse = |error: ConnectError| kube::Error::Service(error.into());
        let host = url.host().ok_or(ConnectError::NoHost).map_err(refuse)?.trim_matches(['[', ']']);
        let is_plain = url.scheme_str() == Some("http");
        let port = url.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let tls = if is_plain { None } else { Some(tls(config, host)?) };
        Ok(Self { rules, host: host.to_owned(), port, tls })
    }

    /// Opens a connection.
    pub(super) async fn dial(&self) -> Result<Dialled, ConnectError> {
        let permits =
            self.rules.connections.iter().map(|connections| connections.clone().try_acquire_owned());
        let permits = permits.collect::<Result<Vec<_>, _>>().map_err(|_| ConnectError::TooManyConnections)?;
        let connecting = timeout(CONNECT_DEADLINE, self.connect());
        let deadline = |_| Err(ConnectError::Deadline { host: self.host.clone() });
        let (stream, protocol) = connecting.await.unwrap_or_else(deadline)?;
        let stream = TokioIo::new(Throttled::new(stream, self.rules.received.clone()));
        Ok(Dialled { stream: Stream { stream, _permits: permits }, protocol })
    }

    async fn connect(
        &self,
    ) -> Result<(Either<TcpStream, Box<TlsStream<TcpStream>>>, Protocol), ConnectError> {
        let stream = connect(&self.rules, self.host.clone(), self.port).await?;
        let Some((connector, name)) = &self.tls else { return Ok((Either::Left(stream), Protocol::Http1)) };
        let stream = connector
            .connect(name.clone(), stream)
            .await
            .map_err(|source| ConnectError::Tls { host: self.host.clone(), source })?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(OFFERED[0]);
        let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
        Ok((Either::Right(Box::new(stream)), protocol))
    }
}

fn tls(config: &Config, host: &str) -> Result<(TlsConnector, ServerName<'static>), kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = OFFERED.map(<[u8]>::to_vec).to_vec();
    let name = config.tls_server_name.as_deref().unwrap_or(host);
    let server = ServerName::try_from(name.to_owned());
    let server = server
        .map_err(|_| kube::Error::Service(ConnectError::ServerName { name: name.to_owned() }.into()))?;
    Ok((TlsConnector::from(Arc::new(tls)), server))
}

async fn connect(rules: &ConnectRules, host: String, port: u16) -> Result<TcpStream, ConnectError> {
    // A number is an address in any notation that the system's resolver knows. It returns the plain notation.
    let found = match rules.lookups.find(&host, port).await {
        Ok(found) => found,
        Err(source) => return Err(ConnectError::Resolve { host: host.clone(), source }),
    };
    let mut last = ConnectError::NoAddress { host: host.clone() };
    for address in found.into_iter().take(ADDRESSES) {
        // A denied address does not hide a permitted one, and a permitted one does not hide a denied one.
        if !rules.addresses.permits(address.ip()) {
            last = ConnectError::Denied { host: host.clone(), address };
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are written as a whole, so waiting for more data (Nagle) only costs time.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(source) => last = ConnectError::Connect { address, source },
        }
    }
    Err(last)
}

/// A connection, which counts against the limits until it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    stream: TokioIo<Throttled<Either<TcpStream, Box<TlsStream<TcpStream>>>>>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Stream {
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
