//! A self-signed certificate.

use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate for loopback, and the acceptor that uses it.
pub(crate) struct Identity {
    /// The certificate in PEM.
    pub(crate) certificate: String,
    pub(crate) acceptor: TlsAcceptor,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]);
        let made = made.expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("the key belongs to the certificate");
        Self { certificate: made.cert.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

/// Encodes bytes for a kubeconfig.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let padded = [group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for digit in 0..4 {
            let value = usize::try_from(bits >> (18 - 6 * digit) & 63).unwrap_or(0);
            text.push(if digit <= group.len() { DIGITS[value].into() } else { '=' });
        }
    }
    text
}
