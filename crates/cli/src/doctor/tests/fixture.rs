//! A sandbox with machines of a test, and a doctor that looks at it.

use super::kubectl;
use super::pod_answers::PodAnswers;
use crate::cluster_access::CallerCluster;
use crate::doctor::{Diagnosis, Scope, diagnose};
use crate::sandbox::environment::SandboxEnvironment;
use crate::sandbox::fleet::{InitialObject, SandboxFleet};
use five_spot_cluster::{Connection, Dial, DialError, Raw, Route};
use five_spot_diagnose::doctor::{Finding, FindingId, Report, Severity};
use futures::future::BoxFuture;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Monday morning.
pub const START: &str = "2026-11-16T08:00:00Z";

/// Every kubeconfig leads to the one cluster there is.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(std::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}

/// A cluster with a controller that runs in it.
pub struct DoctorFixture {
    pub environment: Arc<SandboxEnvironment>,
    pub client: Client,
    /// The requests of the doctor.
    pub requests: Arc<Mutex<Vec<String>>>,
    /// The answers of pods, and of whatever else the in-memory API server does not have.
    pub pods: PodAnswers,
    running: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl DoctorFixture {
    /// A cluster with these objects, at a time, and a controller at work.
    pub async fn new(start: &str, fleet: SandboxFleet) -> Self {
        let world = Self::without_controller(start, &fleet).await;
        world.with_controller(fleet)
    }

    /// The same without a controller.
    pub async fn without_controller(start: &str, fleet: &SandboxFleet) -> Self {
        let start: Timestamp = start.parse().expect("a time");
        let environment = SandboxEnvironment::new(start, 0).expect("a sandbox");
        environment.create_fleet(fleet).await.unwrap_or_else(|refused| panic!("{refused:?}"));
        let client = environment.api.client("shop");
        Self {
            environment: Arc::new(environment),
            client,
            requests: Arc::default(),
            pods: PodAnswers::default(),
            running: None,
            stop: CancellationToken::new(),
        }
    }

    fn with_controller(mut self, fleet: SandboxFleet) -> Self {
        let (environment, stop) = (self.environment.clone(), self.stop.clone());
        self.running = Some(tokio::spawn(async move {
            environment.run(fleet, stop).await.expect("the sandbox runs");
        }));
        self
    }

    /// The access of the caller.
    pub fn access(&self) -> CallerCluster {
        self.access_to(self.service())
    }

    /// The access of a caller whose kubeconfigs of workload clusters lead to a service.
    pub fn access_to(&self, workload: Raw) -> CallerCluster {
        let clock = self.environment.clock.clone();
        let dial = Arc::new(OneCluster(workload));
        let connection = Connection::embedded(self.service(), dial, Arc::new(move || clock.now()), "5spot");
        CallerCluster {
            connection,
            default_namespace: "shop".to_owned(),
            description: "kubeconfig test".to_owned(),
        }
    }

    /// The API server, with the answers of pods, and with a record of requests.
    fn service(&self) -> Raw {
        let (requests, pods) = (self.requests.clone(), self.pods.clone());
        let api = self.environment.api.service();
        Raw::new(tower::service_fn(move |request: Request<Body>| {
            let line = format!("{} {}", request.method(), request.uri());
            requests.lock().expect("nobody panics with it").push(line);
            let hangs = pods.hangs(request.uri().path());
            let answer = if hangs { None } else { pods.answer(request.uri().path()) };
            let api = api.clone();
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                match answer {
                    Some(answer) => Ok(answer),
                    None => api.oneshot(request).await,
                }
            }
        }))
    }

    /// The answer of the doctor.
    pub async fn diagnose(&self, namespace: Option<&str>, name: Option<&str>) -> Diagnosis {
        let scope = Scope { namespace: namespace.map(str::to_owned), name: name.map(str::to_owned) };
        diagnose(&self.access(), &scope, SignedDuration::ZERO).await.expect("the API answers")
    }

    pub async fn report(&self) -> Report {
        self.diagnose(None, None).await.report
    }

    /// Lets time pass.
    pub async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits, for at most an hour, until the doctor finds exactly this above `info`.
    pub async fn finds(&self, id: FindingId) -> Finding {
        let mut report = Report::default();
        for _ in 0..360 {
            self.pass(Duration::from_secs(10)).await;
            report = self.report().await;
            let grave: Vec<&Finding> = grave(&report);
            if let [finding] = grave.as_slice()
                && finding.id == id
            {
                return (*finding).clone();
            }
        }
        panic!("not found: {id}; instead {report:#?}");
    }

    /// Waits, for at most an hour, until the doctor finds nothing above `info`.
    pub async fn is_well(&self) {
        let mut report = Report::default();
        for _ in 0..360 {
            self.pass(Duration::from_secs(10)).await;
            report = self.report().await;
            if grave(&report).is_empty() {
                return;
            }
        }
        panic!("still found: {report:#?}");
    }

    /// Waits until the object is in a phase.
    pub async fn phase(&self, name: &str, phase: &str) {
        for _ in 0..360 {
            self.pass(Duration::from_secs(10)).await;
            let path = format!("/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/{name}");
            if kubectl::get(&self.client, &path).await["status"]["phase"] == phase {
                return;
            }
        }
        panic!("{name} is not {phase}");
    }

    /// Stops the controller; the stand-ins go on.
    pub fn stop_controller(&self) {
        self.stop.cancel();
    }

    /// Carries out a command.
    pub async fn run(&self, command: &str) {
        kubectl::run(&self.client, &self.environment.clock, command).await;
    }
}

impl Drop for DoctorFixture {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }
}

/// The findings above `info`.
pub fn grave(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.severity > Severity::Info).collect()
}

/// A fleet of these objects, with the namespaces that they need.
pub fn fleet(objects: Vec<Value>) -> SandboxFleet {
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "5spot-system"}});
    let objects = std::iter::once(system).chain(objects);
    SandboxFleet {
        objects: objects.map(|value| InitialObject { value, location: None }).collect(),
        script: Vec::new(),
    }
}

/// A machine that is always wanted, with more in its spec.
pub fn machine(name: &str, further: &Value) -> Value {
    let mut machine = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-sun"]},
            "clusterName": "shop",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.36.4+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": format!("{name}.example.org"), "port": 22},
            },
        },
    });
    for (field, value) in further.as_object().into_iter().flatten() {
        machine["spec"][field] = value.clone();
    }
    machine
}
