//! The controller on an embedded API, with its log, metrics, health and requests.

use five_spot_apiserver::faults::{FaultPlan, FaultyService};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_cluster::cache::ClusterSettings;
use five_spot_cluster::{Connection, Dial, DialError, Raw, Route};
use five_spot_controller::health::Health;
use five_spot_controller::logging::{LogFilter, LogFormat, subscriber};
use five_spot_controller::metrics::Metrics;
use five_spot_controller::{RunError, Settings, run};
use five_spot_core::world::Policy;
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use futures::future::BoxFuture;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A text that is in every Secret and every kubeconfig, and may be nowhere else.
pub const CANARY: &str = "c4n4ry-s3cr3t";

/// A Monday, an hour before the windows open.
pub const START: &str = "2026-11-16T08:00:00Z";

const SCHEDULED_MACHINES: &str = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines";

/// The destination of the log lines.
#[derive(Clone, Default)]
pub struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panics while writing").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("nobody panics while writing").clone()).expect("UTF-8")
    }

    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
    }
}

/// Every kubeconfig leads to the one cluster there is, when the way is free.
struct OneCluster {
    cluster: Raw,
    way: Arc<tokio::sync::Mutex<()>>,
}

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(async {
            let _free = self.way.lock().await;
            Ok(Route::Embedded(self.cluster.clone()))
        })
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: Timestamp,
    pub method: http::Method,
    pub uri: String,
    /// Only metadata is to be sent.
    pub metadata: bool,
}

/// A cluster with a controller that runs in it.
pub struct OperatorFixture {
    pub api: ApiServer,
    pub clock: Clock,
    pub faults: FaultPlan,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    pub log: Page,
    /// While it is locked, a controller that connects to a workload cluster waits.
    pub way: Arc<tokio::sync::Mutex<()>>,
    /// The requests of the controller: time, method, path and query.
    pub requests: Arc<Mutex<Vec<Asked>>>,
    /// The number of objects that are reconciled at the same time. One, so that others have to wait.
    pub concurrency: usize,
    /// The namespaces that the controller watches; empty: all.
    pub namespaces: Vec<String>,
    client: kube::Client,
    stop: CancellationToken,
    running: Option<JoinHandle<Result<(), RunError>>>,
    _logging: tracing::subscriber::DefaultGuard,
}

impl OperatorFixture {
    /// One in which everything works, with the kinds of 5-Spot as they are.
    pub fn new(directives: &str) -> Self {
        Self::with_crd(directives, &serde_json::to_value(five_spot_api::crd()).expect("it is JSON"))
    }

    /// One in which this seed decides about faults that are left to chance.
    pub fn with_seed(directives: &str, seed: u64) -> Self {
        let world = Self::new(directives);
        Self { faults: FaultPlan::new(world.clock.clone(), seed), ..world }
    }

    /// One in which `ScheduledMachine`s are what `crd` says.
    pub fn with_crd(directives: &str, crd: &Value) -> Self {
        let log = Page::default();
        let writer = log.clone();
        let filter = LogFilter::parse(directives).expect("a filter");
        let lines = subscriber(LogFormat::Json, filter, move || writer.clone(), false);
        let logging = tracing::subscriber::set_default(lines);
        let clock = Clock::starting_at(START.parse().expect("an instant"));
        let api = ApiServer::new(ApiServerConfig::new(clock.clone()));
        for crd in cluster_api_crds(Contract::V1Beta2).iter().chain(&provider_crds()).chain([crd]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
        }
        let faults = FaultPlan::new(clock.clone(), 1);
        let world = Self {
            client: api.client("shop"),
            metrics: Arc::default(),
            health: Arc::default(),
            way: Arc::default(),
            requests: Arc::default(),
            concurrency: 1,
            namespaces: Vec::new(),
            stop: CancellationToken::new(),
            running: None,
            _logging: logging,
            api,
            clock,
            faults,
            log,
        };
        for namespace in ["shop", "5spot-system"] {
            world.create(
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            );
        }
        world
    }

    /// Starts the stand-ins and the controller.
    pub fn begin(&mut self) {
        let client = || self.api.client("default");
        let timing =
            Timing { join: Duration::from_secs(10), provision: Duration::from_secs(10), ..Timing::default() };
        let stand_ins = StandIns::new(client(), client(), self.clock.clone(), StandInSettings::new(timing));
        tokio::spawn(stand_ins.with_kubeconfig(kubeconfig()).run());
        self.start();
    }

    /// A connection of a program of its own to the same cluster.
    pub fn connection(&self) -> Connection {
        let (requests, clock) = (self.requests.clone(), self.clock.clone());
        let faulty = FaultyService::new(self.api.service(), self.faults.clone());
        let service = Raw::new(tower::ServiceExt::map_request(faulty, move |request: Request<Body>| {
            let (method, uri) = (request.method().clone(), request.uri().to_string());
            let accept = request.headers().get(http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
            let metadata = accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata"));
            let asked = Asked { at: clock.now(), method, uri, metadata };
            requests.lock().expect("nobody panics with it").push(asked);
            request
        }));
        let clock = self.clock.clone();
        let dial = Arc::new(OneCluster { cluster: service.clone(), way: self.way.clone() });
        Connection::embedded(service, dial, Arc::new(move || clock.now()), "5spot-controller")
    }

    /// The settings of the controller that concern its clusters.
    pub fn cluster_settings() -> ClusterSettings {
        ClusterSettings {
            policy: Policy { finalizer_cleanup_timeout: SignedDuration::from_secs(120), ..Policy::default() },
            namespaces: Vec::new(),
            management_nodes: vec!["shop".to_owned()],
            instance: "5spot-controller".to_owned(),
            controller_namespace: "5spot-system".to_owned(),
        }
    }

    /// The controller begins to work.
    pub fn start(&mut self) {
        let connection = self.connection().with_observer(self.metrics.clone());
        let ClusterSettings { policy, management_nodes, .. } = Self::cluster_settings();
        let settings = Settings {
            policy,
            management_nodes,
            namespaces: self.namespaces.clone(),
            concurrency: self.concurrency,
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            ..Settings::default()
        };
        self.running = Some(tokio::spawn(run(connection, settings, self.stop.clone())));
    }

    /// The controller is told to stop, and does.
    pub async fn end(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            running.await.expect("it does not panic").expect("it does not fail");
        }
    }

    /// Another process takes over: it knows nothing but what the cluster says, and counts from 0.
    pub async fn restart(&mut self) {
        self.end().await;
        (self.stop, self.metrics, self.health) = (CancellationToken::new(), Arc::default(), Arc::default());
        self.start();
    }

    /// The requests since a moment.
    pub fn asked_since(&self, moment: Timestamp) -> Vec<Asked> {
        let requests = self.requests.lock().expect("nobody panics with it");
        requests.iter().filter(|asked| asked.at >= moment).cloned().collect()
    }

    /// Lets time pass until a moment of the first day, or of a later one.
    pub async fn until(&self, day: i64, time: &str) {
        let monday: jiff::civil::Date = "2026-11-16".parse().expect("a date");
        let date = monday.saturating_add(jiff::Span::new().days(day));
        let at: Timestamp = format!("{date}T{time}Z").parse().expect("an instant");
        let wait = Duration::try_from(at.duration_since(self.clock.now())).expect("it is still to come");
        tokio::time::sleep(wait).await;
    }

    pub fn create(&self, path: &str, object: &Value) {
        self.api.create(path, object);
    }

    pub fn lend(&self, object: &Value) {
        self.create(SCHEDULED_MACHINES, object);
    }

    async fn ask(&self, request: Request<Vec<u8>>) -> Option<Value> {
        match self.client.request(request).await {
            Ok(answer) => Some(answer),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        self.ask(Request::get(path).body(Vec::new()).expect("a request")).await
    }

    pub async fn patch(&self, path: &str, change: &Value) {
        let body = serde_json::to_vec(change).expect("JSON");
        let request = Request::patch(path).header("content-type", "application/merge-patch+json").body(body);
        let answer = self.ask(request.expect("a request")).await;
        assert!(answer.is_some(), "there is no {path}");
    }

    pub async fn delete(&self, path: &str) {
        self.ask(Request::delete(path).body(Vec::new()).expect("a request")).await;
    }

    pub async fn change(&self, machine: &str, spec: &Value) {
        self.patch(&format!("{SCHEDULED_MACHINES}/{machine}"), &json!({"spec": spec})).await;
    }

    pub async fn status(&self, machine: &str) -> Value {
        let found = self.get(&format!("{SCHEDULED_MACHINES}/{machine}")).await;
        found.map(|object| object["status"].clone()).unwrap_or_default()
    }

    pub async fn machines(&self) -> Vec<Value> {
        let list = self.get(SCHEDULED_MACHINES).await.expect("a list");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn remove(&self, machine: &str) {
        self.delete(&format!("{SCHEDULED_MACHINES}/{machine}")).await;
    }

    /// Waits until a machine is in this phase. A clock that is advanced only by those who wait for it cannot be late.
    pub async fn phase(&self, machine: &str, phase: &str) {
        self.wait(&format!("{machine} to be {phase}"), async || self.status(machine).await["phase"] == phase)
            .await;
    }

    /// Waits until something is so.
    pub async fn wait(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..3600 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let machines = self.machines().await;
        let stand = |machine: &Value| format!("{}: {}", machine["metadata"]["name"], machine["status"]);
        panic!("an hour of waiting for {what}: {:#?}", machines.iter().map(stand).collect::<Vec<_>>());
    }
}

/// A kubeconfig of the workload cluster.
pub fn kubeconfig() -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: w\n\
         clusters: [{{name: w, cluster: {{server: 'https://workload.invalid:6443'}}}}]\n\
         users: [{{name: w, user: {{token: e30.eyJleHAiOjE4MDAwMDAwMDB9.{CANARY}}}}}]\n\
         contexts: [{{name: w, context: {{cluster: w, user: w}}}}]\n"
    )
}
