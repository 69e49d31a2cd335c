//! One embedded API with everybody in it: the fleet, the stand-ins around it, the real controller, and the recorder.

use crate::sandbox::fleet::{self, Fleet, Refusal};
use crate::sandbox::patience::Patient;
use crate::sandbox::recorder::Recorder;
use anyhow::Context as _;
use five_spot_apiserver::ids::Ids;
use five_spot_apiserver::{Api, ApiConfig, Clock};
use five_spot_cluster::{ANY_NAMESPACE, Connection, Dial, DialError, Raw, Route};
use five_spot_controller::Settings;
use five_spot_standins::{Contract, Scenario, Timing, Troupe, cluster_api_crds, provider_crds};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::config::Kubeconfig;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneSyncService;

/// The sandbox before the curtain rises.
pub struct Stage {
    pub api: Api,
    pub clock: Clock,
    pub recorder: Recorder,
    seed: u64,
}

impl Stage {
    /// An API with every kind that is needed, at an instant.
    pub fn new(start: Timestamp, seed: u64) -> anyhow::Result<Self> {
        let clock = Clock::starting_at(start);
        let api = Api::new(ApiConfig { seed, ..ApiConfig::new(clock.clone()) });
        let ours = serde_json::to_value(five_spot_api::crd()).context("failed to write our own CRD")?;
        let theirs = cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds());
        for crd in theirs.chain([ours]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
        }
        Ok(Self { recorder: Recorder::new(clock.clone()), api, clock, seed })
    }

    /// Puts the fleet on the stage.
    pub async fn furnish(&self, fleet: &Fleet) -> Result<(), Refusal> {
        fleet.move_in(&self.api.client("default")).await
    }

    /// Plays until somebody fails or `stop` is called; the controller ends in good order.
    ///
    /// The recorder and the actors each are one task with a fixed order inside, and so is the script: the same start
    /// and the same seed give the same play.
    pub async fn play(&self, fleet: Fleet, stop: CancellationToken) -> anyhow::Result<()> {
        let client = || self.api.client("default");
        let recording = tokio::spawn(self.recorder.clone().follow(client()));
        let troupe = Troupe::new(client(), client(), self.clock.clone(), self.scenario());
        let actors = tokio::spawn(troupe.play());
        let controller = tokio::spawn(five_spot_controller::run(self.connection(), settings(), stop));
        let script =
            tokio::spawn(fleet::play(fleet.script, client(), self.clock.clone(), self.recorder.clone()));
        let scripted = async {
            // When everything is done, the rest is the clock's.
            script.await.context("the script broke off")??;
            std::future::pending::<anyhow::Result<()>>().await
        };
        let result = tokio::select! {
            biased;
            ended = controller => match ended {
                Ok(result) => result.context("the controller failed"),
                Err(error) => Err(error).context("the controller broke off"),
            },
            ended = recording => ended.context("the recorder broke off").flatten(),
            ended = scripted => ended,
            ended = actors => ended.context("the actors broke off"),
        };
        result
    }

    /// How long things take here: about what real machines of some kind take, and not the same for every seed.
    fn scenario(&self) -> Scenario {
        let mut chance = Ids::new(self.seed);
        Scenario::new(Timing {
            provision: Duration::from_secs(40 + chance.below(50)),
            join: Duration::from_secs(15 + chance.below(30)),
            // Nobody here reads a lease, and each renewal is a write.
            heartbeat: Duration::from_hours(24),
            ..Timing::default()
        })
    }

    fn connection(&self) -> Connection {
        let service: Raw = BoxCloneSyncService::new(Patient::new(self.api.clone()));
        let clock = self.clock.clone();
        let dial = Arc::new(OneCluster(service.clone()));
        Connection::embedded(service, dial, Arc::new(move || clock.now()), "5spot-controller")
            .with_witness(Arc::new(self.recorder.clone()))
    }
}

/// Management and workload cluster are one: every kubeconfig leads there.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(std::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}

/// How the controller is run: there is one cluster, and every Node is in it.
fn settings() -> Settings {
    Settings { management_nodes: vec![ANY_NAMESPACE.to_owned()], ..Settings::default() }
}
