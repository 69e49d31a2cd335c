//! Connections to the API server: TCP, TLS, HTTP/1.1.

use super::{ClientError, ClusterAccess};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A peer that is gone is noticed after about this long, also while a watch is silent.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Opens a connection. It ends when the sender and the answer are dropped.
pub(super) async fn connect(access: &ClusterAccess) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let failed = |source: io::Error| ClientError::Connect { authority: access.authority(), source };
    let tls = Arc::new(tls_config(&access.certificate_authority()?)?);
    let name = ServerName::try_from(access.host().to_owned())
        .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
    let tcp = TcpStream::connect((access.host(), access.port())).await.map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    keep_alive(&tcp).map_err(failed)?;
    let stream = TlsConnector::from(tls).connect(name, tcp).await.map_err(failed)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(ClientError::Http)?;
    // An error of the connection is also reported to the request that waits for it.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn tls_config(certificate_authority: &[u8]) -> Result<ClientConfig, ClientError> {
    let unusable = |error: &dyn std::fmt::Display| ClientError::CertificateAuthority(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificate_authority) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"no certificate in it"));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Connections are rare; tickets for the next one would only use memory.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn keep_alive(tcp: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(tcp, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(tcp, 3)?;
    Ok(())
}
