//! Readiness checks. There is no event to await before a server answers, so these functions poll at short intervals,
//! with a deadline, and stop at once when the process ends.

use std::io;
use std::time::Duration;

use http::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The endpoint at which a component reports its health.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "scheme", rename_all = "lowercase")]
pub enum Probe {
    /// Plain HTTP on loopback.
    Http {
        /// The port.
        port: u16,
        /// The path.
        path: String,
    },
    /// HTTPS on loopback. The certificate of the server is not verified: only its health matters.
    Https {
        /// The port.
        port: u16,
        /// The path.
        path: String,
    },
}

/// The timeout of a single request: a suspended process accepts connections and never responds.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The polling interval: short compared with the seconds that a start takes, long compared with the cost of a
/// request.
const ASK_EVERY: Duration = Duration::from_millis(50);

impl Probe {
    /// Sends one request.
    pub async fn is_well(&self) -> bool {
        match self {
            Self::Http { port, path } => {
                matches!(tokio::time::timeout(ANSWER_WITHIN, http_is_ok(*port, path)).await, Ok(Ok(true)))
            }
            Self::Https { port, path } => match https_client(*port) {
                Some(client) => https_is_ok(&client, path).await,
                None => false,
            },
        }
    }

    /// Polls until the component is healthy.
    pub async fn until_well(&self) {
        let mut interval = tokio::time::interval(ASK_EVERY);
        match self {
            Self::Http { .. } => loop {
                interval.tick().await;
                if self.is_well().await {
                    return;
                }
            },
            Self::Https { port, path } => {
                let client = https_client(*port);
                loop {
                    interval.tick().await;
                    if let Some(client) = &client
                        && https_is_ok(client, path).await
                    {
                        return;
                    }
                }
            }
        }
    }
}

async fn http_is_ok(port: u16, path: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let status_line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(status_line.ends_with(b" 200 OK"))
}

fn https_client(port: u16) -> Option<kube::Client> {
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse().ok()?);
    config.accept_invalid_certs = true;
    config.default_retry = false;
    kube::Client::try_from(config).ok()
}

async fn https_is_ok(client: &kube::Client, path: &str) -> bool {
    let Ok(request) = Request::get(path).body(Vec::new()) else {
        return false;
    };
    matches!(tokio::time::timeout(ANSWER_WITHIN, client.request_text(request)).await, Ok(Ok(_)))
}

/// Waits until the server's `OpenAPI` document contains a kind, which happens a moment after the kind can be
/// used. `kubectl explain` and client-side validation read it. Returns false if the deadline passes first.
pub async fn until_documented(
    client: &kube::Client,
    group_version: &str,
    kind: &str,
    within: Duration,
) -> bool {
    let described = async {
        let mut interval = tokio::time::interval(ASK_EVERY);
        loop {
            interval.tick().await;
            let Ok(request) = Request::get(format!("/openapi/v3/apis/{group_version}")).body(Vec::new())
            else {
                continue;
            };
            let document = client.request_text(request).await.unwrap_or_default();
            if document.contains(&format!("\"kind\":\"{kind}\"")) {
                return;
            }
        }
    };
    tokio::time::timeout(within, described).await.is_ok()
}
