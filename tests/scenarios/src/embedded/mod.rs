//! The sandbox as a world: embedded APIs, stand-ins for everybody around, the real controller, virtual time.
//!
//! It has to be made on a current-thread runtime whose clock is paused ([`play`] makes one): then a quiet hour takes no
//! time, and the same scenario gives the same writes in the same order.

mod blow;
mod dial;
mod event_order;
mod furnish;
mod impairments;
mod incarnation;
mod ledger;
mod line;
mod neighbours;
mod run;
mod weather;

pub use blow::{Blow, BlowAt};
pub use event_order::{EventOrder, Reordered, Reordering, SETTLES_WITHIN};
pub use furnish::Layout;
pub(crate) use run::in_sandbox;
pub use run::{Run, Watched, play, play_cell};
pub use weather::{Disturbance, Jump, Storm};

use crate::kinds::{SECRET, Side};
use crate::steps::Steps;
use crate::world::{ApiServer, Impairment, Pace, World, Write, WrongServer};
use blow::Fate;
use dial::Keys;
use five_spot_apiserver::faults::{FaultPlan, FaultyService, Rule};
use five_spot_apiserver::{Api, Clock};
use five_spot_cluster::Now;
use five_spot_controller::Settings;
use five_spot_controller::metrics::Metrics;
use five_spot_standins::Behaviour;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use incarnation::{Incarnation, Servers};
use jiff::Timestamp;
use kube::Client;
use ledger::Ledger;
use neighbours::HOSTILE_NAMESPACE;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The namespace of every scenario here.
const NAMESPACE: &str = "desks";

/// How long after its death the controller is started again: as long as a container takes.
const RESTART: Duration = Duration::from_secs(1);

/// How long a scenario waits for something.
const PATIENCE: Duration = Duration::from_mins(30);

/// How long no write must come for everything to count as settled.
const SETTLED_AFTER: Duration = Duration::from_secs(90);

/// A sandbox.
pub struct Embedded {
    layout: Layout,
    clock: Clock,
    management: Api,
    workload: Api,
    /// A cluster that has nothing to do with the scenario.
    other_cluster: Api,
    actors: five_spot_standins::Scenario,
    keys: Arc<Keys>,
    fate: Arc<Fate>,
    plan: FaultPlan,
    /// What the controller takes for the time.
    now: Now,
    ledger: Arc<Ledger>,
    patience: Duration,
    settled_after: Duration,
    controller: Arc<Mutex<Option<Incarnation>>>,
    /// Whether there should be one: whoever was told to stop is not started again after a blow.
    is_wanted: Arc<AtomicBool>,
    addresses: AtomicU32,
    steps: Steps,
    /// Those of every controller here.
    metrics: Arc<Metrics>,
    tasks: Vec<AbortHandle>,
}

impl Embedded {
    /// A sandbox without a controller.
    fn new(layout: Layout, disturbance: &Disturbance) -> Self {
        let furnished = furnish::furnish(layout);
        let clock = furnished.clock.clone();
        if disturbance.neighbours {
            neighbours::move_in(&furnished.management);
        }
        let world = Self {
            layout,
            clock: clock.clone(),
            management: furnished.management,
            workload: furnished.workload,
            other_cluster: furnished.other_cluster,
            actors: furnished.actors,
            keys: Arc::new(Keys::default()),
            fate: Arc::new(Fate::new(disturbance.blows.clone(), disturbance.reordering)),
            plan: disturbance.plan(&clock),
            now: disturbance.now(&clock),
            ledger: Arc::new(Ledger::new(clock)),
            patience: disturbance.patience.unwrap_or(PATIENCE),
            settled_after: disturbance.settles_after.unwrap_or(SETTLED_AFTER),
            controller: Arc::default(),
            is_wanted: Arc::default(),
            addresses: AtomicU32::new(1),
            steps: Steps::default(),
            metrics: Arc::default(),
            tasks: vec![furnished.task],
        };
        world.restart_after_blow()
    }

    /// Adds a fault of the controller's requests.
    pub(crate) fn add_fault(&self, rule: Rule) {
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

    /// Whoever falls gets up again.
    fn restart_after_blow(mut self) -> Self {
        let (fate, controller, maker) = (self.fate.clone(), self.controller.clone(), self.maker());
        let is_wanted = self.is_wanted.clone();
        let task = tokio::spawn(async move {
            loop {
                fate.fallen().await;
                put(&controller, None);
                tokio::time::sleep(RESTART).await;
                if is_wanted.load(Ordering::SeqCst) {
                    put(&controller, Some(maker()));
                }
            }
        });
        self.tasks.push(task.abort_handle());
        self
    }

    /// Makes controllers.
    fn maker(&self) -> impl Fn() -> Incarnation + Send + Sync + use<> {
        let faulty = |api: &Api| FaultyService::new(api.service(), self.plan.clone());
        let servers = Servers {
            management: faulty(&self.management),
            workload: faulty(&self.workload),
            other_cluster: faulty(&self.other_cluster),
            nodes: self.workload.clone(),
        };
        let (keys, fate, ledger) = (self.keys.clone(), self.fate.clone(), self.ledger.clone());
        let (now, layout, metrics) = (self.now.clone(), self.layout, self.metrics.clone());
        move || {
            let watched = match layout {
                Layout::OneCluster => Vec::new(),
                Layout::TwoClusters | Layout::OldClusterApi => {
                    vec![NAMESPACE.to_owned(), HOSTILE_NAMESPACE.to_owned()]
                }
            };
            let settings = Settings { namespaces: watched, metrics: metrics.clone(), ..Settings::default() };
            Incarnation::start(servers.clone(), &keys, &fate, ledger.clone(), now.clone(), settings)
        }
    }
}

/// Another controller, or none. Whichever was there before dies on the spot.
fn put(controller: &Mutex<Option<Incarnation>>, other: Option<Incarnation>) {
    *controller.lock().unwrap_or_else(PoisonError::into_inner) = other;
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl World for Embedded {
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
            patience: self.patience,
            settled_after: self.settled_after,
            quiet: Duration::from_mins(10),
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
            let world: &dyn World = self;
            if let Some(secret) = self.kubeconfig_secret() {
                let text = self.keys.kubeconfig();
                let object = json!({
                    "metadata": {"name": secret, "labels": {"cluster.x-k8s.io/cluster-name": name}},
                    "type": "cluster.x-k8s.io/secret", "stringData": {"value": text},
                });
                world.apply(SECRET, object).await?;
            }
            furnish::make_cluster(world, name).await
        }
        .boxed()
    }

    fn provider(&self, behaviour: Behaviour) {
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
        // Everybody may do everything here.
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
        self.keys.change();
        futures::future::ready(Ok(self.keys.kubeconfig())).boxed()
    }

    fn kubeconfig_by_another_line(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        futures::future::ready(Ok(self.keys.kubeconfig_by_another_line())).boxed()
    }

    fn set_api_server(&self, side: Side, state: ApiServer) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.keys.set_api_server(side, state);
        futures::future::ready(Ok(())).boxed()
    }

    fn set_other_line(&self, state: ApiServer) {
        self.note_step();
        self.keys.set_other_line(state);
    }

    fn kubeconfig_to(&self, server: WrongServer) -> BoxFuture<'_, anyhow::Result<String>> {
        futures::future::ready(Ok(self.keys.kubeconfig_to(server))).boxed()
    }

    fn set_impaired(&self, what: Impairment, is_impaired: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        if what == Impairment::ClusterApi {
            self.actors.set_cluster_api_running(!is_impaired);
        } else {
            self.keys.impairments.set(what, is_impaired);
        }
        futures::future::ready(Ok(())).boxed()
    }

    fn allow_node_writes(&self, is_allowed: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.keys.allow_node_writes(is_allowed);
        futures::future::ready(Ok(())).boxed()
    }

    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(true, Ordering::SeqCst);
        put(&self.controller, Some(self.maker()()));
        futures::future::ready(Ok(())).boxed()
    }

    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(false, Ordering::SeqCst);
        let running = self.controller.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            match running {
                Some(controller) => controller.stop().await,
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.note_step();
        self.is_wanted.store(false, Ordering::SeqCst);
        put(&self.controller, None);
        futures::future::ready(Ok(())).boxed()
    }

    fn writes(&self) -> anyhow::Result<Vec<Write>> {
        self.fate.check_limits()?;
        Ok(self.ledger.writes())
    }
}
