//! The servers of the program, over real ports.

use crate::process::{GUARD, line_of, program};
use crate::served::get;
use crate::stopping::kubeconfig;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock, HttpServer, serve};
use five_spot_standins::{Contract, cluster_api_crds, provider_crds};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

/// A program that runs, and where it serves.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _home: tempfile::TempDir,
    metrics: u16,
    health: u16,
}

impl Running {
    pub async fn start(server: &HttpServer) -> Self {
        Self::start_with(server, &[]).await
    }

    async fn start_with(server: &HttpServer, flags: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = program(home.path());
        let config = kubeconfig(home.path(), &format!("http://{}", server.address()));
        command
            .env("KUBECONFIG", config)
            .env("METRICS_PORT", "0")
            .arg("--health-port=0")
            .args(flags)
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut running = Self { child, lines, _home: home, metrics: 0, health: 0 };
        let serving = running.line("Serving metrics and health").await;
        let port = |name: &str| serving[name].as_u64().and_then(|port| port.try_into().ok()).expect("a port");
        (running.metrics, running.health) = (port("metrics_port"), port("health_port"));
        running
    }

    /// The fields of the next line with this message.
    async fn line(&mut self, message: &str) -> Value {
        let found = async {
            while let Some(line) = self.lines.next_line().await.expect("text") {
                let line = line_of(&line);
                if line["fields"]["message"] == message {
                    return line["fields"].clone();
                }
            }
            panic!("it ended without {message:?}");
        };
        timeout(GUARD, found).await.expect("it says so")
    }

    /// Waits until `path` is answered with `status` and a body that has all of this in it.
    pub async fn answered(&self, path: &str, status: u16, parts: &[&str]) {
        let answered = async {
            loop {
                let (found, body) = get(self.health, path).await;
                if found == status && parts.iter().all(|part| body.contains(part)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(GUARD, answered)
            .await
            .unwrap_or_else(|_| panic!("{path} is never answered with {status} and {parts:?}"));
    }
}

/// An API with the kinds that the controller needs.
pub async fn api() -> (ApiServer, HttpServer) {
    let (api, server) = api_without_ours().await;
    let ours = serde_json::to_value(five_spot_api::crd()).expect("it is JSON");
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &ours);
    (api, server)
}

/// An API with all kinds that the controller needs but its own.
pub async fn api_without_ours() -> (ApiServer, HttpServer) {
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    for crd in cluster_api_crds(Contract::V1Beta2).iter().chain(&provider_crds()) {
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    }
    let server = serve(api.service(), ([127, 0, 0, 1], 0).into()).await.expect("a port");
    (api, server)
}

#[tokio::test]
async fn metrics_and_health_are_served_under_all_their_names() {
    let (_api, server) = api().await;
    let running = Running::start(&server).await;
    for path in ["/ready", "/readyz", "/health", "/healthz"] {
        running.answered(path, 200, &["\n\nok\n"]).await;
    }
    let (status, page) = get(running.metrics, "/metrics").await;
    assert_eq!(status, 200);
    assert!(page.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{page}");
    assert!(page.contains("\nfivespot_is_leader 1\n"), "{page}");
    for (port, path) in [(running.metrics, "/health"), (running.health, "/metrics"), (running.health, "/")] {
        assert_eq!(get(port, path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn thread_metrics_are_exported_on_request() {
    let (_api, server) = api().await;
    let silent = Running::start(&server).await;
    assert!(!get(silent.metrics, "/metrics").await.1.contains("fivespot_runtime_"));
    let running = Running::start_with(&server, &["--runtime-metrics"]).await;
    running.answered("/ready", 200, &["ok"]).await;
    let (_, page) = get(running.metrics, "/metrics").await;
    let value = |series: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("fivespot_runtime_{series} ")));
        line.unwrap_or_else(|| panic!("{series} in {page}")).parse().expect("a number")
    };
    assert!(value("workers") >= 1.0);
    assert!(value("alive_tasks") >= 4.0, "every watch is a task");
    assert!(value("global_queue_depth") >= 0.0);
    let workers = 0..std::thread::available_parallelism().expect("a number").get();
    let sum = |series: &str| -> f64 {
        workers.clone().map(|worker| value(&format!("{series}{{worker=\"{worker}\"}}"))).sum()
    };
    assert!(sum("worker_busy_seconds_total") > 0.0);
    assert!(sum("worker_parks_total") > 0.0);
}

#[tokio::test]
async fn a_cluster_without_our_kinds_is_not_ready_and_says_why() {
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let server = serve(api.service(), ([127, 0, 0, 1], 0).into()).await.expect("a port");
    let running = Running::start(&server).await;
    let reasons = ["\nscheduledmachines are not synced: ", "\nmachines are not synced: ", "404"];
    running.answered("/ready", 503, &reasons).await;
    running.answered("/health", 200, &["ok"]).await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let (_api, server) = api().await;
    let taken = TcpListener::bind("[::]:0").await.expect("a port");
    let port = taken.local_addr().expect("an address").port();
    for (flag, other) in [("--metrics-port", "--health-port"), ("--health-port", "--metrics-port")] {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = program(home.path());
        command.env("KUBECONFIG", kubeconfig(home.path(), &format!("http://{}", server.address())));
        command.args([format!("{flag}={port}"), format!("{other}=0")]);
        let output = timeout(GUARD, command.output()).await.expect("it ends").expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        let line = line_of(said.lines().last().expect("a line"));
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["fields"]["error"], format!("port {port} is in use: choose another with {flag}"));
    }
}

#[tokio::test]
async fn it_stops_while_a_client_is_connected() {
    let (_api, server) = api().await;
    let mut running = Running::start(&server).await;
    let idle = TcpStream::connect(("127.0.0.1", running.metrics)).await.expect("it listens");
    let id = running
        .child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?))
        .expect("it runs");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    running.line("Stopped").await;
    let status = timeout(GUARD, running.child.wait()).await.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(0));
    drop(idle);
}
