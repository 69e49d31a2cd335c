//! The in-memory environment: embedded APIs, stand-ins for all other components, the real controller, virtual time.
//!
//! It has to be made on a current-thread runtime whose clock is paused ([`play`] makes one): then an idle hour takes no
//! time, and the same scenario gives the same writes in the same order.

mod controller_run;
mod dial;
mod disturbance;
mod election;
mod event_order;
mod fleet;
mod impairments;
mod leader_fault;
mod link;
mod neighbours;
mod run;
mod setup;
mod transport;
mod write_fault;
mod write_log;

pub use disturbance::{ClockJump, Disturbance, Storm};
pub use event_order::{EventOrder, Reordered, Reordering, SETTLES_WITHIN};
pub use leader_fault::LeaderFaultAt;
pub(crate) use run::in_memory;
pub use run::{Run, WatchLog, run, run_cell};
pub use setup::Layout;
pub use write_fault::{WriteFault, WriteFaultAt};

use crate::environment::{Environment, Impairment, LeaderFault, Pace, ServerState, Write, WrongServer};
use crate::kinds::{ClusterRole, SECRET};
use crate::scenario::Controllers;
use crate::steps::Steps;
use controller_run::{ControllerRun, Servers};
use dial::ServerAccess;
use five_spot_apiserver::faults::{FaultPlan, FaultRule, FaultyService};
use five_spot_apiserver::{ApiServer, Clock};
use five_spot_cluster::Now;
use five_spot_controller::Settings;
use five_spot_controller::metrics::Metrics;
use five_spot_standins::ProviderBehaviour;
use fleet::Fleet;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use neighbours::HOSTILE_NAMESPACE;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;
use write_fault::FaultInjector;
use write_log::WriteLog;

/// The namespace of every scenario here.
const NAMESPACE: &str = "desks";

/// The time until a crashed controller is restarted: about that of a container.
const RESTART: Duration = Duration::from_secs(1);

/// The time a scenario waits for something.
const WAIT_LIMIT: Duration = Duration::from_mins(30);

/// The time without a write after which everything counts as settled.
const SETTLED_AFTER: Duration = Duration::from_secs(90);

/// The time for which nothing may be written at the end.
const QUIET: Duration = Duration::from_mins(10);

/// The same where Leases are renewed every second, each of which is simulated.
const QUIET_WITH_LEASES: Duration = Duration::from_mins(2);

/// A namespace that does not exist.
pub const MISSING_NAMESPACE: &str = "missing";

/// An in-memory environment.
pub struct InMemory {
    layout: Layout,
    /// The namespaces that the controller watches; empty: all.
    watched: Vec<String>,
    clock: Clock,
    management: ApiServer,
    workload: ApiServer,
    /// A cluster that is not part of the scenario.
    other_cluster: ApiServer,
    actors: five_spot_standins::StandInSettings,
    access: Arc<ServerAccess>,
    injector: Arc<FaultInjector>,
    plan: FaultPlan,
    /// The clock of the controller.
    now: Now,
    write_log: Arc<WriteLog>,
    wait_limit: Duration,
    settled_after: Duration,
    fleet: Arc<Fleet>,
    /// True if a controller should run: one that was stopped on purpose is not restarted after a fault.
    is_wanted: Arc<AtomicBool>,
    addresses: AtomicU32,
    steps: Steps,
    /// Those of every controller here.
    metrics: Arc<Metrics>,
    tasks: Vec<AbortHandle>,
}

impl InMemory {
    /// An in-memory environment in which these controllers can be started.
    fn new(layout: Layout, controllers: Controllers, disturbance: &Disturbance) -> Self {
        let clusters = setup::create_clusters(layout);
        let clock = clusters.clock.clone();
        if disturbance.neighbours {
            neighbours::move_in(&clusters.management);
        }
        let env = Self {
            fleet: Arc::new(Fleet::new(controllers, &clusters.management)),
            layout,
            watched: watched_namespaces(layout, disturbance),
            clock: clock.clone(),
            management: clusters.management,
            workload: clusters.workload,
            other_cluster: clusters.other_cluster,
            actors: clusters.actors,
            access: Arc::new(ServerAccess::default()),
            injector: Arc::new(FaultInjector::new(disturbance)),
            plan: disturbance.plan(&clock),
            now: disturbance.now(&clock),
            write_log: Arc::new(WriteLog::new(clock)),
            wait_limit: disturbance.wait_limit.unwrap_or(WAIT_LIMIT),
            settled_after: disturbance.settles_after.unwrap_or(SETTLED_AFTER),
            is_wanted: Arc::default(),
            addresses: AtomicU32::new(1),
            steps: Steps::default(),
            metrics: Arc::default(),
            tasks: vec![clusters.task],
        };
        env.restart_after_crash()
    }

    /// Adds a fault of the controller's requests.
    pub(crate) fn add_fault(&self, rule: FaultRule) {
        self.plan.add(rule);
    }

    /// Lets all requests succeed again.
    pub(crate) fn clear_faults(&self) {
        self.plan.clear();
    }

    /// The page that a metrics server would serve.
    pub(crate) fn metrics_page(&self) -> String {
        self.metrics.page()
    }

    fn note_step(&self) {
        self.steps.note(self.clock.now());
    }

    /// Ends the outages of a scenario that could not run to its end.
    fn end_outages(&self) {
        self.access.set_api_server(ClusterRole::Management, ServerState::Up);
        self.access.set_api_server(ClusterRole::Workload, ServerState::Up);
        self.access.set_other_line(ServerState::Up);
    }

    /// Restarts the controller after each crash.
    fn restart_after_crash(mut self) -> Self {
        let (injector, fleet, maker) = (self.injector.clone(), self.fleet.clone(), self.maker());
        let is_wanted = self.is_wanted.clone();
        let task = tokio::spawn(async move {
            loop {
                injector.crashed().await;
                let dead = fleet.dead();
                for number in &dead {
                    fleet.put(*number, None);
                }
                tokio::time::sleep(RESTART).await;
                if is_wanted.load(Ordering::SeqCst) {
                    for number in dead {
                        fleet.put(number, Some(maker(number)));
                    }
                }
            }
        });
        self.tasks.push(task.abort_handle());
        self
    }

    /// Makes the controller of a number.
    fn maker(&self) -> impl Fn(u32) -> ControllerRun + Send + Sync + use<> {
        let faulty = |api: &ApiServer| FaultyService::new(api.service(), self.plan.clone());
        let servers = Servers {
            management: faulty(&self.management),
            workload: faulty(&self.workload),
            other_cluster: faulty(&self.other_cluster),
            nodes: self.workload.clone(),
        };
        let (access, injector, write_log) =
            (self.access.clone(), self.injector.clone(), self.write_log.clone());
        let (now, watched, metrics) = (self.now.clone(), self.watched.clone(), self.metrics.clone());
        let fleet = self.fleet.clone();
        move |number| {
            let (namespaces, metrics) = (watched.clone(), metrics.clone());
            let process = fleet.process(number);
            let settings = Settings { namespaces, metrics, ..Settings::default() };
            let settings = fleet.settings(number, &process, settings);
            ControllerRun::start(
                process,
                fleet.election(),
                servers.clone(),
                &access,
                &injector,
                write_log.clone(),
                now.clone(),
                settings,
            )
        }
    }
}

/// The namespaces that the controller watches; empty: all.
fn watched_namespaces(layout: Layout, disturbance: &Disturbance) -> Vec<String> {
    let more =
        [(disturbance.neighbours, HOSTILE_NAMESPACE), (disturbance.missing_namespace, MISSING_NAMESPACE)];
    match layout {
        Layout::OneCluster => Vec::new(),
        Layout::TwoClusters | Layout::OldClusterApi => {
            let more = more.into_iter().filter(|(is_watched, _)| *is_watched).map(|(_, name)| name);
            [NAMESPACE].into_iter().chain(more).map(str::to_owned).collect()
        }
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Environment for InMemory {
    fn management(&self) -> Client {
        self.management.client(NAMESPACE)
    }

    fn workload(&self) -> Client {
        self.workload.client(NAMESPACE)
    }

    fn namespace(&self) -> &'static str {
        NAMESPACE
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn steps(&self) -> &Steps {
        &self.steps
    }

    fn pace(&self) -> Pace {
        Pace {
            wait_limit: self.wait_limit,
            settled_after: self.settled_after,
            quiet: if self.fleet.election().is_some() { QUIET_WITH_LEASES } else { QUIET },
            is_virtual: true,
            time_factor: 1,
        }
    }

    fn cluster_api(&self) -> &'static str {
        self.layout.contract().version()
    }

    fn spec(&self) -> Value {
        json!({})
    }

    fn address(&self) -> String {
        format!("10.0.0.{}", self.addresses.fetch_add(1, Ordering::Relaxed))
    }

    fn make_cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let env: &dyn Environment = self;
            if let Some(secret) = self.kubeconfig_secret() {
                let text = self.access.kubeconfig();
                let object = json!({
                    "metadata": {"name": secret, "labels": {"cluster.x-k8s.io/cluster-name": name}},
                    "type": "cluster.x-k8s.io/secret", "stringData": {"value": text},
                });
                env.apply(SECRET, object).await?;
            }
            setup::make_cluster(env, name).await
        }
        .boxed()
    }

    fn provider(&self, behaviour: ProviderBehaviour) {
        self.note_step();
        self.actors.in_namespace(NAMESPACE, |current| *current = behaviour);
    }

    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        self.note_step();
        self.actors.set_silent(node, is_silent);
        futures::future::ready(Ok(())).boxed()
    }

    fn cut_off<'a>(&'a self, node: &'a str, is_cut_off: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        self.silence(node, is_cut_off)
    }

    fn grant<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        // There is no authorization here.
        futures::future::ready(Ok(())).boxed()
    }

    fn kubeconfig_secret(&self) -> Option<String> {
        match self.layout {
            Layout::OneCluster => None,
            Layout::TwoClusters | Layout::OldClusterApi => {
                Some(format!("{}-kubeconfig", crate::subject::CLUSTER_NAME))
            }
        }
    }

    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        self.note_step();
        self.access.change();
        futures::future::ready(Ok(self.access.kubeconfig())).boxed()
    }

    fn kubeconfig_by_another_line(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        futures::future::ready(Ok(self.access.kubeconfig_by_another_line())).boxed()
    }

    fn set_api_server(&self, side: ClusterRole, state: ServerState) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.access.set_api_server(side, state);
        futures::future::ready(Ok(())).boxed()
    }

    fn set_other_line(&self, state: ServerState) {
        self.note_step();
        self.access.set_other_line(state);
    }

    fn kubeconfig_to(&self, server: WrongServer) -> BoxFuture<'_, anyhow::Result<String>> {
        futures::future::ready(Ok(self.access.kubeconfig_to(server))).boxed()
    }

    fn set_impaired(&self, what: Impairment, is_impaired: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        if what == Impairment::ClusterApi {
            self.actors.set_cluster_api_running(!is_impaired);
        } else {
            self.access.impairments.set(what, is_impaired);
        }
        futures::future::ready(Ok(())).boxed()
    }

    fn allow_node_writes(&self, is_allowed: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.access.allow_node_writes(is_allowed);
        futures::future::ready(Ok(())).boxed()
    }

    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(true, Ordering::SeqCst);
        let make = self.maker();
        self.fleet.numbers().for_each(|number| self.fleet.put(number, Some(make(number))));
        futures::future::ready(Ok(())).boxed()
    }

    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(false, Ordering::SeqCst);
        let running = self.fleet.take();
        async move {
            running.iter().for_each(ControllerRun::cancel);
            for controller in running {
                controller.stop().await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(false, Ordering::SeqCst);
        drop(self.fleet.take());
        futures::future::ready(Ok(())).boxed()
    }

    fn disturb_controller(&self, fault: LeaderFault) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        async move {
            if self.fleet.disturb(fault).await?.is_over() {
                self.injector.report_crash();
            }
            Ok(())
        }
        .boxed()
    }

    fn writes(&self) -> anyhow::Result<Vec<Write>> {
        self.injector.check_limits()?;
        Ok(self.write_log.writes())
    }
}
