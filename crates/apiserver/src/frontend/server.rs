//! The API over HTTP, for `kubectl` and other programs.

use super::guard::Guarded;
use super::service::{BoxError, ResponseBody};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::Service;

/// Connections at the same time. Each watch of a client needs one, and each is a file descriptor: half of the 1,024 that most
/// systems give a process. Others wait until one is closed. An idle connection is never closed: a deadline for the head of a
/// request would need a timer, and timers follow the virtual time of the server.
const CONNECTIONS: usize = 512;

/// A listening API server, which is stopped on drop.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for this server.
    pub fn kubeconfig(&self) -> String {
        let name = "5spot-sandbox";
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "users": [{"name": name, "user": {}}],
        })
        .to_string()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves `service` on `address`; port 0 selects any free port.
pub async fn serve<S>(service: S, address: SocketAddr) -> std::io::Result<HttpServer>
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = BoxError>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let accepting = tokio::spawn(accept_connections(listener, service, CONNECTIONS));
    Ok(HttpServer { address, accepting })
}

async fn accept_connections<S>(listener: TcpListener, service: S, most: usize)
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = BoxError>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    // The connections are in a `JoinSet`, so that they end with the server.
    let mut connections = JoinSet::new();
    let permits = Arc::new(Semaphore::new(most));
    while let Ok(permit) = permits.clone().acquire_owned().await
        && let Ok((stream, _)) = listener.accept().await
    {
        // Watch events are small: without this each waits up to 40 ms for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(Guarded::new(service.clone()));
        connections.spawn(async move {
            // A client may disconnect in the middle of a response.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::service::MOST_BODY;
    use crate::{ApiServer, ApiServerConfig, Clock};
    use serde_json::Value;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    /// A server on a real socket, for so many connections.
    async fn server(connections: usize) -> HttpServer {
        let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        HttpServer {
            address,
            accepting: tokio::spawn(accept_connections(listener, api.service(), connections)),
        }
    }

    /// The code and the body of the answer to a request with this head and body. The server may stop to read.
    async fn answer(server: &HttpServer, line: &str, headers: &[&str], body: &[u8]) -> (u16, Value) {
        let mut stream = TcpStream::connect(server.address()).await.expect("a connection");
        let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.expect("it is read");
        let (mut reader, mut writer) = stream.split();
        let write = async {
            let _ = writer.write_all(body).await;
            std::future::pending::<()>().await;
        };
        let mut text = Vec::new();
        tokio::select! {
            () = write => {},
            _ = reader.read_to_end(&mut text) => {},
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (code, serde_json::from_str(body).unwrap_or_default())
    }

    const HOST: &str = "Host: localhost";
    const JSON: &str = "Content-Type: application/json";
    const NAMESPACES: &str = "POST /api/v1/namespaces";

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_as_by_a_real_server() {
        let server = server(4).await;
        let text = format!("Content-Length: {}", MOST_BODY + 1);
        let (code, status) =
            answer(&server, NAMESPACES, &[HOST, JSON, &text], &vec![b' '; MOST_BODY + 1]).await;
        assert_eq!((code, &status["reason"]), (413, &"RequestEntityTooLarge".into()), "{status}");
        assert_eq!(status["message"], "Request entity too large: limit is 3145728");
        // One without a length, and without an end.
        let chunk = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
        let chunked = "Transfer-Encoding: chunked";
        let (code, _) = answer(&server, NAMESPACES, &[HOST, JSON, chunked], &chunk.repeat(4)).await;
        assert_eq!(code, 413);

        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}).to_string();
        let padded = format!("{object}{}", " ".repeat(MOST_BODY - object.len()));
        let text = format!("Content-Length: {MOST_BODY}");
        let (code, status) = answer(&server, NAMESPACES, &[HOST, JSON, &text], padded.as_bytes()).await;
        assert_eq!(code, 201, "{status}");
    }

    #[tokio::test]
    async fn requests_of_web_pages_are_refused_on_the_socket() {
        let server = server(4).await;
        let body = br#"{"metadata":{"name":"a"}}"#;
        let length = format!("Content-Length: {}", body.len());
        let refused = async |headers: &[&str], code: u16, word: &str| {
            let headers = [headers, &[&*length]].concat();
            let (found, status) = answer(&server, NAMESPACES, &headers, body).await;
            assert_eq!(found, code, "{headers:?}: {status}");
            assert!(status["message"].as_str().is_some_and(|text| text.contains(word)), "{status}");
        };
        refused(&["Host: evil.example", JSON], 403, "Host").await;
        refused(&[JSON], 403, "Host").await;
        refused(&[HOST, "Origin: https://evil.example", JSON], 403, "web pages").await;
        refused(&[HOST], 415, "content type").await;
        refused(&[HOST, "Content-Type: text/plain"], 415, "content type").await;
        let (code, list) = answer(&server, "GET /api/v1/namespaces", &[HOST], b"").await;
        assert_eq!(code, 200);
        assert!(!list.to_string().contains("\"a\""), "nothing was created: {list}");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait() {
        let server = server(2).await;
        let idle: Vec<TcpStream> = vec![
            TcpStream::connect(server.address()).await.expect("a connection"),
            TcpStream::connect(server.address()).await.expect("a connection"),
        ];
        let get = || answer(&server, "GET /version", &[HOST], b"");
        assert!(timeout(Duration::from_millis(300), get()).await.is_err(), "there is no room");
        drop(idle);
        let (code, _) = timeout(Duration::from_secs(20), get()).await.expect("there is room now");
        assert_eq!(code, 200);
    }
}
