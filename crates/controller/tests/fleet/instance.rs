//! One instance of the controller, and the writes that the API server has carried out for it.

use five_spot_apiserver::{ApiServer, ApiService, BoxError, Clock, ResponseBody};
use five_spot_cluster::{Connection, Dial, DialError, Now, Raw, Route};
use five_spot_controller::brake::BrakeSettings;
use five_spot_controller::health::Health;
use five_spot_controller::leader::{LeaseTiming, TokioClock};
use five_spot_controller::metrics::Metrics;
use five_spot_controller::shards::{InstanceTiming, ShardSettings};
use five_spot_controller::{RunError, Settings, run};
use five_spot_core::RemovalLimit;
use five_spot_core::shard::Shard;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;
use kube::config::Kubeconfig;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    pub process: usize,
    pub method: Method,
    pub path: String,
    pub began: Timestamp,
    pub ended: Timestamp,
}

/// The parts that all instances share.
#[derive(Clone)]
pub struct Shared {
    pub api: ApiServer,
    pub clock: Clock,
    pub answered: Arc<Mutex<Vec<Answered>>>,
    /// Leases are refused, as without permission.
    pub refuses_leases: Arc<AtomicBool>,
    pub processes: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Link {
    shared: Shared,
    service: ApiService,
    process: usize,
    is_dead: Arc<AtomicBool>,
}

impl Link {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        if self.is_dead.load(Ordering::SeqCst) {
            return Err("the process is gone".into());
        }
        let (method, path, began) =
            (request.method().clone(), request.uri().to_string(), self.shared.clock.now());
        if path.contains("/leases") && self.shared.refuses_leases.load(Ordering::SeqCst) {
            return Ok(forbidden());
        }
        let answer = tower::Service::call(&mut self.service, request).await?;
        let (process, ended) = (self.process, self.shared.clock.now());
        let answered = Answered { process, method, path, began, ended };
        self.shared.answered.lock().expect("no panic").push(answered);
        Ok(answer)
    }
}

fn forbidden() -> Response<ResponseBody> {
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "leases.coordination.k8s.io is forbidden",
    });
    let body = http_body_util::Full::new(bytes::Bytes::from(status.to_string()))
        .map_err(|never: std::convert::Infallible| match never {});
    Response::builder()
        .status(StatusCode::FORBIDDEN)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.boxed_unsync())
        .expect("the parts are valid")
}

impl tower::Service<Request<Body>> for Link {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// Every kubeconfig leads to the one cluster there is.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(futures::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}

/// An instance that runs until it is dropped, which kills it.
pub struct Instance {
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    is_dead: Arc<AtomicBool>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Instance {
    pub fn start(shared: &Shared, id: u32, count: u32, limit: RemovalLimit, now: Now) -> Self {
        let process = shared.processes.fetch_add(1, Ordering::SeqCst);
        let is_dead = Arc::<AtomicBool>::default();
        let service = Raw::new(Link {
            service: shared.api.service(),
            shared: shared.clone(),
            process,
            is_dead: is_dead.clone(),
        });
        let own_shard = Shard::new(id, count).expect("a shard");
        let (metrics, health) = (Arc::new(Metrics::new(own_shard)), Arc::<Health>::default());
        let dial = Arc::new(OneCluster(service.clone()));
        let connection =
            Connection::embedded(service, dial, now, "5spot-controller").with_observer(metrics.clone());
        let timing = LeaseTiming::default();
        let shards = ShardSettings {
            shard: own_shard,
            lease_name: "5spot-leader".to_owned(),
            namespace: "5spot-system".to_owned(),
            identity: format!("5spot-controller-{id}_{process}"),
            pod_uid: None,
            process: None,
            timing: if count == 1 { InstanceTiming::alone(timing) } else { InstanceTiming::shared(timing) },
            clock: Arc::new(TokioClock::default()),
        };
        let settings = Settings {
            management_nodes: vec!["shop".to_owned()],
            instance: format!("5spot-controller-{id}"),
            metrics: metrics.clone(),
            health: health.clone(),
            shards: Some(shards),
            brake: BrakeSettings { limit, ..BrakeSettings::default() },
            ..Settings::default()
        };
        let stop = CancellationToken::new();
        let task = Some(tokio::spawn(run(connection, settings, stop.clone())));
        Self { metrics, health, is_dead, stop, task }
    }

    /// The value of a series.
    pub fn metric(&self, series: &str) -> f64 {
        let page = self.metrics.page();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {series} in {page}"))
    }

    pub fn owned(&self) -> f64 {
        self.metric(r#"fivespot_shard_objects{state="owned"}"#)
    }

    pub fn works(&self) -> bool {
        self.metric("fivespot_is_leader") > 0.0
    }

    /// Stops it as SIGTERM does, and waits until it has ended.
    pub async fn terminate(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.expect("it does not panic").expect("it does not fail");
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.is_dead.store(true, Ordering::SeqCst);
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.stop.cancel();
    }
}
