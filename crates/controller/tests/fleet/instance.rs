//! One instance of the controller, and the writes that the API server has carried out for it.

use crate::referee::Referee;
use five_spot_apiserver::{ApiServer, ApiService, BoxError, Clock, ResponseBody};
use five_spot_cluster::{Connection, Dial, DialError, Now, Raw, Route};
use five_spot_controller::brake::BrakeSettings;
use five_spot_controller::health::Health;
use five_spot_controller::leader::{ElectionSettings, LeaseTiming, TokioClock};
use five_spot_controller::metrics::Metrics;
use five_spot_controller::shards::{InstanceTiming, ShardSettings};
use five_spot_controller::{RunError, Settings, run};
use five_spot_core::RemovalLimit;
use five_spot_core::shard::Shard;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use jiff::Timestamp;
use kube::client::Body;
use kube::config::Kubeconfig;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    pub process: usize,
    pub method: Method,
    pub path: String,
    pub code: u16,
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
    /// Makes requests slow, and compares each write with the Leases; absent unless a campaign is running.
    pub referee: Option<Arc<Referee>>,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Requests and answers pass.
    Open,
    /// Requests fail.
    Refusing,
    /// Nothing passes in either direction until it is open again.
    Hanging,
}

#[derive(Clone)]
struct Link {
    shared: Shared,
    service: ApiService,
    process: usize,
    shard: Shard,
    is_dead: Arc<AtomicBool>,
    state: watch::Receiver<LinkState>,
}

/// Waits while nothing passes.
async fn passes(mut state: watch::Receiver<LinkState>) -> Result<(), BoxError> {
    match state.wait_for(|state| *state != LinkState::Hanging).await.map(|state| *state) {
        Ok(LinkState::Open | LinkState::Hanging) => Ok(()),
        Ok(LinkState::Refusing) => Err("there is no connection".into()),
        Err(_) => std::future::pending().await,
    }
}

impl Link {
    async fn answer(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        if self.is_dead.load(Ordering::SeqCst) {
            return Err("the process is gone".into());
        }
        let Some(referee) = self.shared.referee.clone() else {
            passes(self.state.clone()).await?;
            return self.carry_out(request).await;
        };
        let state = self.state.clone();
        passes(state.clone()).await?;
        // What has left the process is carried out, whether or not anybody waits for the answer.
        let delay = referee.delay();
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let sent = async move {
            tokio::time::sleep(delay).await;
            referee.judge(&self.shared, (self.shard, self.process), method, &path).await;
            self.carry_out(request).await
        };
        let answer = tokio::spawn(sent).await??;
        tokio::time::sleep(delay).await;
        passes(state.clone()).await?;
        Ok(answer.map(|body| {
            let frames = stream::unfold((body, state), move |(mut body, state)| async move {
                let frame = body.frame().await?;
                let frame = passes(state.clone()).await.and(frame);
                Some((frame, (body, state)))
            });
            StreamBody::new(frames).boxed_unsync()
        }))
    }

    async fn carry_out(mut self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (method, path, began) =
            (request.method().clone(), request.uri().to_string(), self.shared.clock.now());
        if path.contains("/leases") && self.shared.refuses_leases.load(Ordering::SeqCst) {
            return Ok(forbidden());
        }
        let answer = tower::Service::call(&mut self.service, request).await?;
        let (process, code, ended) = (self.process, answer.status().as_u16(), self.shared.clock.now());
        let answered = Answered { process, method, path, code, began, ended };
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
    link: watch::Sender<LinkState>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Instance {
    /// Starts a process of this instance, of several that elect a leader if `has_election` is true.
    pub fn start(
        shared: &Shared,
        (id, count): (u32, u32),
        has_election: bool,
        limit: RemovalLimit,
        now: Now,
    ) -> Self {
        let process = shared.processes.fetch_add(1, Ordering::SeqCst);
        let own_shard = Shard::new(id, count).expect("a shard");
        let (is_dead, (link, state)) = (Arc::<AtomicBool>::default(), watch::channel(LinkState::Open));
        let service = Raw::new(Link {
            service: shared.api.service(),
            shared: shared.clone(),
            process,
            shard: own_shard,
            is_dead: is_dead.clone(),
            state,
        });
        let (metrics, health) = (Arc::new(Metrics::new(own_shard)), Arc::<Health>::default());
        let dial = Arc::new(OneCluster(service.clone()));
        let connection =
            Connection::embedded(service, dial, now, "5spot-controller").with_observer(metrics.clone());
        let timing = LeaseTiming::default();
        let election = has_election.then(|| ElectionSettings {
            name: format!("5spot-leader-{id}"),
            namespace: "5spot-system".to_owned(),
            identity: format!("5spot-controller-{id}_{process}"),
            timing,
            clock: Arc::new(TokioClock::default()),
        });
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
            management_nodes: vec!["shop".to_owned(), "bank".to_owned()],
            instance: format!("5spot-controller-{id}"),
            metrics: metrics.clone(),
            health: health.clone(),
            election,
            shards: Some(shards),
            brake: BrakeSettings { limit, ..BrakeSettings::default() },
            ..Settings::default()
        };
        let stop = CancellationToken::new();
        let task = Some(tokio::spawn(run(connection, settings, stop.clone())));
        Self { metrics, health, is_dead, link, stop, task }
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

    /// Makes all its requests fail, or none any more.
    pub fn cut_off(&self, is_cut_off: bool) {
        self.set_link(if is_cut_off { LinkState::Refusing } else { LinkState::Open });
    }

    pub fn set_link(&self, state: LinkState) {
        self.link.send_replace(state);
    }

    /// Opens its connection after some time, unless it has ended by then.
    pub fn reopen_after(&self, pause: Duration) {
        let link = self.link.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            link.send_replace(LinkState::Open);
        });
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
