//! An API server in this process, with a certificate and a token, that can go away and come back at the same address.

use bytes::Bytes;
use five_spot_agent::annotate::OwnNode;
use five_spot_api::reclaim::{CONFIG_KEY, config_map};
use five_spot_apiserver::{ApiServer, ApiServerConfig, BoxError, Clock, ResponseBody};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// The Node of the tests, and its machine.
pub const NODE: &str = "desk-1";
pub const MACHINE_ID: &str = "b08dfa6083e7567a1921a715000001fb";

/// The state that connections share.
#[derive(Debug)]
struct Shared {
    api: ApiServer,
    token: Mutex<String>,
    /// Every watch begins and fails at once with this code; 0 if none does.
    watch_failure: AtomicU16,
    requests: Mutex<Vec<(Method, String, StatusCode)>>,
}

/// An API server.
pub struct Server {
    shared: Arc<Shared>,
    tls: TlsAcceptor,
    certificate: String,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server with the Node of the tests.
    pub async fn start() -> Self {
        let host = own_address();
        let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": "5spot-system"}}));
        let shared = Arc::new(Shared {
            api,
            token: Mutex::new("first-token".to_owned()),
            watch_failure: AtomicU16::new(0),
            requests: Mutex::default(),
        });
        let certified = rcgen::generate_simple_self_signed([host.to_string()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("a certificate and its key");
        let listener = TcpListener::bind((host, 0)).await.expect("a port");
        let mut server = Self {
            shared,
            tls: TlsAcceptor::from(Arc::new(config)),
            certificate: certified.cert.pem(),
            address: listener.local_addr().expect("an address"),
            accepting: None,
        };
        server.accept(listener);
        server.create_node(Some(MACHINE_ID));
        server
    }

    /// Goes away: connections are cut and new ones refused.
    pub async fn stop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
        }
    }

    /// Comes back at the same address.
    pub async fn restart(&mut self) {
        self.stop().await;
        // A client that tries to connect while nobody listens may be given this port as its own, for a moment.
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                Err(error) => panic!("failed to listen on {}: {error}", self.address),
            }
        };
        self.accept(listener);
    }

    fn accept(&mut self, listener: TcpListener) {
        let (shared, tls) = (self.shared.clone(), self.tls.clone());
        self.accepting = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                let (shared, tls) = (shared.clone(), tls.clone());
                tcp.set_nodelay(true).expect("a socket");
                connections.spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let service = service_fn(move |request| answer(shared.clone(), request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        }));
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes the files that a pod finds in the folder of its service account.
    pub fn write_credentials(&self, folder: &Path) {
        std::fs::write(folder.join("ca.crt"), &self.certificate).expect("a file");
        let token = self.shared.token.lock().expect("no panic").clone();
        std::fs::write(folder.join("token"), token).expect("a file");
    }

    /// Accepts this token and no other from now on.
    pub fn set_token(&self, token: &str) {
        token.clone_into(&mut self.shared.token.lock().expect("no panic"));
    }

    /// Begins every watch from now on, and fails it at once with this code.
    pub fn fail_watches(&self, code: StatusCode) {
        self.shared.watch_failure.store(code.as_u16(), Ordering::Relaxed);
    }

    /// Makes the Node of the tests, as its kubelet would.
    pub fn create_node(&self, machine_id: Option<&str>) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": NODE, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        });
        if let Some(machine_id) = machine_id {
            node["status"] = json!({"nodeInfo": {"machineID": machine_id}});
        }
        self.shared.api.create("/api/v1/nodes", &node);
    }

    /// Sends a request as an administrator, past TLS and tokens.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::new(Bytes::from(body.to_owned())))
            .expect("a request");
        let response = self.shared.api.service().oneshot(request).await.expect("an answer");
        let code = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub async fn delete(&self, path: &str) {
        let (code, body) = self.request(Method::DELETE, path, "application/json", "").await;
        assert!(code.is_success(), "{path}: {body}");
    }

    /// Creates or replaces the agent's configuration.
    pub async fn apply_config(&self, toml: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": config_map(NODE), "namespace": "5spot-system"},
            "data": {CONFIG_KEY: toml},
        });
        let path = format!("{CONFIG_MAPS}/{}", config_map(NODE));
        let (code, _) = self.request(Method::GET, &path, "application/json", "").await;
        let (method, path) =
            if code.is_success() { (Method::PUT, path.as_str()) } else { (Method::POST, CONFIG_MAPS) };
        let (code, body) = self.request(method, path, "application/json", &object.to_string()).await;
        assert!(code.is_success(), "{body}");
    }

    pub async fn delete_config(&self) {
        self.delete(&format!("{CONFIG_MAPS}/{}", config_map(NODE))).await;
    }

    /// The annotations of 5-Spot on the Node.
    pub async fn annotations(&self) -> Vec<(String, String)> {
        let (_, node) =
            self.request(Method::GET, &format!("/api/v1/nodes/{NODE}"), "application/json", "").await;
        let annotations = node["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
        annotations
            .into_iter()
            .filter(|(key, _)| key.starts_with("5spot.finos.org/"))
            .map(|(key, value)| (key, text(value)))
            .collect()
    }

    /// The answers to patches of Nodes so far.
    pub fn patches(&self) -> Vec<StatusCode> {
        let requests = self.shared.requests.lock().expect("no panic");
        requests.iter().filter(|(method, ..)| *method == Method::PATCH).map(|(.., code)| *code).collect()
    }

    /// Methods and paths of all requests so far.
    pub fn requests(&self) -> Vec<(Method, String, StatusCode)> {
        self.shared.requests.lock().expect("no panic").clone()
    }
}

/// A loopback address that no other server uses: nobody takes its port while it is away.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let process = u8::try_from(std::process::id() % 250).expect("small") + 1;
    Ipv4Addr::new(127, process, NEXT.fetch_add(1, Ordering::Relaxed), 1)
}

/// The folder of the ConfigMaps.
const CONFIG_MAPS: &str = "/api/v1/namespaces/5spot-system/configmaps";

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<ResponseBody>, BoxError> {
    let (method, path) = (request.method().clone(), request.uri().to_string());
    let expected = format!("Bearer {}", shared.token.lock().expect("no panic"));
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let fixed = |code: StatusCode, body: String| {
        let body = Full::new(Bytes::from(body)).map_err(BoxError::from).boxed_unsync();
        Response::builder().status(code).body(body)
    };
    let failure = shared.watch_failure.load(Ordering::Relaxed);
    let response = if given != Some(&expected) {
        let status = json!({"kind": "Status", "code": 401, "message": "Unauthorized"});
        fixed(StatusCode::UNAUTHORIZED, status.to_string())?
    } else if failure != 0 && path.contains("watch=true") {
        let status = json!({"kind": "Status", "code": failure, "message": "etcd is away"});
        fixed(StatusCode::OK, format!("{}\n", json!({"type": "ERROR", "object": status})))?
    } else {
        shared.api.service().oneshot(request).await?
    };
    shared.requests.lock().expect("no panic").push((method, path, response.status()));
    Ok(response)
}

/// The Node of the tests, as an agent knows it.
pub fn own_node() -> OwnNode {
    OwnNode { name: NODE.into(), machine_id: Some(MACHINE_ID.into()) }
}
