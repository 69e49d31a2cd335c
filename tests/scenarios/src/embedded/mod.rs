//! The sandbox as a world: embedded APIs, stand-ins for everybody around, the real controller, virtual time.
//!
//! It has to be made on a current-thread runtime whose clock is paused ([`play`] makes one): then a quiet hour takes no
//! time, and the same scenario gives the same writes in the same order.

mod blow;
mod dial;
mod furnish;
mod incarnation;
mod ledger;
mod line;
mod weather;

pub use blow::{Blow, BlowAt};
pub use furnish::Layout;
pub use weather::{Disturbance, Jump, Storm};

use crate::chronicle::{Chronicle, Count};
use crate::kinds::SECRET;
use crate::perform::{Performance, perform};
use crate::scenario::Scenario;
use crate::world::{Pace, World, Write};
use anyhow::Context as _;
use blow::Fate;
use dial::Keys;
use five_spot_cluster::Now;
use five_spot_sandbox::actors::Behaviour;
use five_spot_sandbox::faults::{FaultPlan, FaultyService};
use five_spot_sandbox::{Api, Clock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use incarnation::Incarnation;
use jiff::Timestamp;
use kube::Client;
use ledger::Ledger;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The namespace of every scenario here.
const NAMESPACE: &str = "desks";

/// How long after its death the controller is started again: as long as a container takes.
const RESTART: Duration = Duration::from_secs(1);

/// A sandbox.
pub struct Embedded {
    layout: Layout,
    clock: Clock,
    management: Api,
    workload: Api,
    actors: five_spot_sandbox::actors::Scenario,
    keys: Arc<Keys>,
    fate: Arc<Fate>,
    plan: FaultPlan,
    /// What the controller takes for the time.
    now: Now,
    ledger: Arc<Ledger>,
    controller: Arc<Mutex<Option<Incarnation>>>,
    /// Whether there should be one: whoever was told to stop is not started again after a blow.
    is_wanted: Arc<AtomicBool>,
    addresses: AtomicU32,
    tasks: Vec<AbortHandle>,
}

/// Plays a scenario in a new sandbox, undisturbed or not.
pub fn play(scenario: &Scenario, layout: Layout, disturbance: &Disturbance) -> anyhow::Result<Performance> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let world = Embedded::new(layout, disturbance);
        world.start_controller().await?;
        let played = perform(&world, scenario).await;
        let told = || format!("the controller wrote:\n{}", world.ledger.told());
        let performance = played.with_context(told)?;
        world.fate.check()?;
        Ok(performance)
    })
}

/// Plays a scenario for as long as it goes, whether it succeeds or not, and tells what came and went.
pub fn comings_and_goings(
    scenario: &Scenario,
    layout: Layout,
    disturbance: &Disturbance,
) -> anyhow::Result<BTreeMap<String, Count>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let world = Embedded::new(layout, disturbance);
        world.start_controller().await?;
        let chronicle = Chronicle::begin(&world);
        // What a scenario waits for may never come while the clock is wrong.
        let _ = (scenario.play)(&world).await;
        world.fate.check_limits()?;
        Ok(chronicle.counts())
    })
}

impl Embedded {
    /// A sandbox without a controller.
    fn new(layout: Layout, disturbance: &Disturbance) -> Self {
        let furnished = furnish::furnish(layout);
        let clock = furnished.clock.clone();
        let world = Self {
            layout,
            clock: clock.clone(),
            management: furnished.management,
            workload: furnished.workload,
            actors: furnished.actors,
            keys: Arc::new(Keys::default()),
            fate: Arc::new(Fate::new(disturbance.blows.clone())),
            plan: disturbance.plan(&clock),
            now: disturbance.now(&clock),
            ledger: Arc::new(Ledger::new(clock)),
            controller: Arc::default(),
            is_wanted: Arc::default(),
            addresses: AtomicU32::new(1),
            tasks: vec![furnished.task],
        };
        world.restart_after_blow()
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
        let services = (faulty(&self.management), faulty(&self.workload));
        let (keys, fate, ledger) = (self.keys.clone(), self.fate.clone(), self.ledger.clone());
        let (now, layout) = (self.now.clone(), self.layout);
        move || {
            let watched = match layout {
                Layout::OneCluster => Vec::new(),
                Layout::TwoClusters => vec![NAMESPACE.to_owned()],
            };
            Incarnation::start(services.clone(), keys.clone(), &fate, ledger.clone(), now.clone(), watched)
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

    fn pace(&self) -> Pace {
        Pace {
            patience: Duration::from_mins(30),
            settled_after: Duration::from_secs(90),
            quiet: Duration::from_mins(10),
            is_virtual: true,
        }
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
        self.actors.in_namespace(NAMESPACE, |current| *current = behaviour);
    }

    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        self.actors.set_silent(node, is_silent);
        futures::future::ready(Ok(())).boxed()
    }

    fn grant<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        // Everybody may do everything here.
        futures::future::ready(Ok(())).boxed()
    }

    fn kubeconfig_secret(&self) -> Option<String> {
        match self.layout {
            Layout::OneCluster => None,
            Layout::TwoClusters => Some(format!("{}-kubeconfig", crate::subject::CLUSTER_NAME)),
        }
    }

    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        self.keys.change();
        futures::future::ready(Ok(self.keys.kubeconfig())).boxed()
    }

    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.is_wanted.store(true, Ordering::SeqCst);
        put(&self.controller, Some(self.maker()()));
        futures::future::ready(Ok(())).boxed()
    }

    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
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
        self.is_wanted.store(false, Ordering::SeqCst);
        put(&self.controller, None);
        futures::future::ready(Ok(())).boxed()
    }

    fn writes(&self) -> anyhow::Result<Vec<Write>> {
        self.fate.check_limits()?;
        Ok(self.ledger.writes())
    }
}
