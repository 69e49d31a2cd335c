//! A private Prometheus server, and requests to it.

use anyhow::Context as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A Prometheus server that is stopped on drop.
pub(crate) struct Prometheus(Child);

impl Prometheus {
    /// Starts the server with a configuration and a data directory, without a limit for the age of its data.
    pub(crate) fn start(config: &Path, data: &Path, port: u16) -> anyhow::Result<Self> {
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg("--storage.tsdb.retention.time=100y")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("failed to start prometheus")?;
        Ok(Self(child))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of an expression now.
pub(crate) fn query(port: u16, expression: &str) -> anyhow::Result<serde_json::Value> {
    get(port, &format!("/api/v1/query?query={}", encoded(expression)))
}

/// Encodes text for a query string.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02x}"))
}

/// The response of Prometheus to a request.
pub(crate) fn get(port: u16, path: &str) -> anyhow::Result<serde_json::Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").context("the response has no body")?.1;
    serde_json::from_str(body).with_context(|| format!("{path}: {body}"))
}
