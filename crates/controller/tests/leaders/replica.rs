//! One controller among several.

use crate::link::{Kind, Link, Server, State};
use five_spot_cluster::transport::http::WriteGuard;
use five_spot_cluster::{Connection, Dial, DialError, Raw, Route};
use five_spot_controller::health::Health;
use five_spot_controller::leader::{ElectionSettings, LeaseClock, LeaseGuard, LeaseTiming, TokioClock};
use five_spot_controller::metrics::Metrics;
use five_spot_controller::{RunError, Settings, run};
use futures::future::BoxFuture;
use kube::config::Kubeconfig;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The clock of a process that can be paused: for the process no time passes meanwhile.
#[derive(Default)]
pub struct PausableClock {
    clock: TokioClock,
    paused_at: Mutex<Option<Duration>>,
}

impl LeaseClock for PausableClock {
    fn now(&self) -> Duration {
        self.paused_at.lock().expect("no panic").unwrap_or_else(|| self.clock.now())
    }
}

/// Every kubeconfig leads to the one cluster there is.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(futures::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}

/// A controller that runs until it is dropped.
pub struct Replica {
    pub pod: String,
    pub identity: String,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    clock: Arc<PausableClock>,
    link: watch::Sender<State>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Replica {
    /// Starts the process of this number in a pod.
    pub fn start(server: &Server, pod: &str, process: usize) -> Self {
        Self::launch(server, pod, process, None)
    }

    /// Starts a process that is alone, without an election, and whose writes need another guard.
    pub fn start_alone(server: &Server, guard: Arc<dyn WriteGuard>) -> Self {
        Self::launch(server, "alone", 1, Some(guard))
    }

    fn launch(server: &Server, pod: &str, process: usize, guard: Option<Arc<dyn WriteGuard>>) -> Self {
        let (link, state) = watch::channel(State::Open);
        let service = Raw::new(Link {
            service: server.api.service(),
            server: server.clone(),
            pod: pod.to_owned(),
            state,
        });
        let (clock, metrics) = (Arc::new(PausableClock::default()), Arc::<Metrics>::default());
        let (now, health) = (server.clock.clone(), Arc::<Health>::default());
        let dial = Arc::new(OneCluster(service.clone()));
        let connection = Connection::embedded(service, dial, Arc::new(move || now.now()), "5spot-controller")
            .with_observer(metrics.clone());
        let is_alone = guard.is_some();
        let connection = guard.into_iter().fold(connection, Connection::with_write_guard);
        let identity = format!("{pod}_{process}");
        let election = ElectionSettings {
            name: "5spot-leader".to_owned(),
            namespace: "5spot-system".to_owned(),
            identity: identity.clone(),
            timing: LeaseTiming::default(),
            clock: clock.clone(),
        };
        let settings = Settings {
            management_nodes: vec!["shop".to_owned()],
            concurrency: 4,
            instance: pod.to_owned(),
            metrics: metrics.clone(),
            health: health.clone(),
            election: (!is_alone).then_some(election),
            ..Settings::default()
        };
        metrics.follow_election(Arc::new(LeaseGuard::new(clock.clone())));
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(connection, settings, stop.clone()));
        Self { pod: pod.to_owned(), identity, metrics, health, clock, link, stop, task }
    }

    /// True if its metrics say that it leads. A paused process answers nobody.
    pub fn leads(&self) -> bool {
        let is_paused = self.clock.paused_at.lock().expect("no panic").is_some();
        !is_paused && self.metrics.page().contains("\nfivespot_is_leader 1\n")
    }

    pub fn set_link(&self, state: State) {
        self.link.send_replace(state);
    }

    /// For it no time passes, and what it is about to write is sent when it goes on.
    pub fn pause(&self, before: Kind) {
        *self.clock.paused_at.lock().expect("no panic") = Some(self.clock.clock.now());
        self.set_link(State::Holding(before));
    }

    /// Lets it go on: what it was about to write is sent before it sees who holds the Lease.
    pub async fn resume(&self) {
        *self.clock.paused_at.lock().expect("no panic") = None;
        self.set_link(State::Holding(Kind::Lease));
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.set_link(State::Open);
    }

    /// Stops it as SIGTERM does, and waits until it has ended.
    pub async fn terminate(mut self) {
        self.stop.cancel();
        (&mut self.task).await.expect("it does not panic").expect("it does not fail");
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.link.send_replace(State::Dead);
        self.task.abort();
        self.stop.cancel();
    }
}
