//! A malicious Kubernetes API server. It sends what the administrator of a workload cluster, or any server in
//! a tenant's kubeconfig, could send.
//!
//! It implements HTTP/1.1 on plain sockets, so that it can violate every rule. It listens on loopback and
//! stops on drop.

mod attack;
mod memory;
mod tls;

pub use attack::Attack;
pub use memory::{resident_bytes, resident_bytes_of};

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tls::Identity;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The number of requests whose first lines are kept.
const REMEMBERED: usize = 10_000;

/// A running malicious server.
#[derive(Debug)]
pub struct HostileServer {
    address: SocketAddr,
    seen: Arc<Seen>,
    certificate: Option<String>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    sent: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl HostileServer {
    /// Starts a server that responds to every request in this way.
    ///
    /// # Errors
    /// Returns an error if no port is available.
    pub async fn start(attack: Attack) -> std::io::Result<Self> {
        Self::start_with(attack, None).await
    }

    /// The same over TLS, with a self-signed certificate, as a kubeconfig requires.
    ///
    /// # Errors
    /// Returns an error if no port is available.
    pub async fn start_tls(attack: Attack) -> std::io::Result<Self> {
        Self::start_with(attack, Some(Identity::new())).await
    }

    async fn start_with(attack: Attack, identity: Option<Identity>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let certificate = identity.as_ref().map(|identity| identity.certificate.clone());
        let accepting = tokio::spawn(accept(listener, attack, seen.clone(), identity));
        Ok(Self { address, seen, certificate, accepting })
    }

    /// A kubeconfig for this server.
    pub fn kubeconfig(&self) -> String {
        let mut cluster = serde_json::json!({"server": self.url()});
        if let Some(certificate) = &self.certificate {
            cluster["certificate-authority-data"] = tls::base64(certificate.as_bytes()).into();
        }
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {"token": "a-token"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        })
        .to_string()
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// A Secret with this name and a kubeconfig for this server, as a tenant would write it.
    pub fn secret(&self, name: &str) -> serde_json::Value {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {"value": tls::base64(self.kubeconfig().as_bytes())},
        })
    }

    /// The number of accepted connections.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// The number of written bytes of bodies.
    pub fn sent(&self) -> usize {
        self.seen.sent.load(Ordering::Relaxed)
    }

    /// The first lines of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A connection, with or without TLS.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

type Stream = Box<dyn Duplex>;

async fn accept(listener: TcpListener, attack: Attack, seen: Arc<Seen>, identity: Option<Identity>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Otherwise every response in two parts waits 40 ms for an acknowledgement of the first.
        let _ = stream.set_nodelay(true);
        seen.connections.fetch_add(1, Ordering::Relaxed);
        let (attack, seen) = (attack.clone(), seen.clone());
        let acceptor = identity.as_ref().map(|identity| identity.acceptor.clone());
        connections.spawn(async move {
            // The client may disconnect at any moment, which is what it should do.
            let _ = match acceptor {
                None => serve(Box::new(stream), &attack, &seen).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => serve(Box::new(stream), &attack, &seen).await,
                    Err(error) => Err(error),
                },
            };
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: Stream, attack: &Attack, seen: &Seen) -> std::io::Result<()> {
    loop {
        let Some(request) = read_head(&mut stream).await? else { return Ok(()) };
        {
            let mut requests = seen.requests.lock().unwrap_or_else(PoisonError::into_inner);
            if requests.len() < REMEMBERED {
                requests.push(request.clone());
            }
        }
        let mut wire = Wire { stream: &mut stream, seen };
        if !attack.carry_out(&request, &mut wire).await? {
            return wire.stream.shutdown().await;
        }
    }
}

/// Reads a request up to the end of its headers, and returns its first line.
async fn read_head(stream: &mut Stream) -> std::io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&byte);
    }
    Ok(String::from_utf8_lossy(&head).lines().next().map(str::to_owned))
}

/// The response stream to the client.
struct Wire<'a> {
    stream: &'a mut Stream,
    seen: &'a Seen,
}

impl Wire<'_> {
    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.seen.sent.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes a chunk of a body of unknown length.
    async fn chunk(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.send(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
        self.send(bytes).await?;
        self.send(b"\r\n").await
    }

    async fn chunked_head(&mut self) -> std::io::Result<()> {
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
    }

    async fn whole(&mut self, code: u16, headers: &str, body: &str) -> std::io::Result<()> {
        let length = body.len();
        let head = format!("HTTP/1.1 {code} X\r\n{headers}content-length: {length}\r\n\r\n");
        self.send(head.as_bytes()).await?;
        self.send(body.as_bytes()).await
    }
}
