//! The environment of a sandbox run: an in-memory API server with the fleet, the stand-ins, the real controller and the
//! recorder.

use crate::sandbox::fleet::{self, RefusedObject, SandboxFleet};
use crate::sandbox::long_watches::LongWatches;
use crate::sandbox::recorder::Recorder;
use crate::sandbox::samples::Observers;
use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_apiserver::ids::Ids;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_cluster::{ANY_NAMESPACE, Connection, Dial, DialError, Raw, Route};
use five_spot_controller::Settings;
use five_spot_controller::metrics::Metrics;
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::util::BoxCloneSyncService;

/// The DaemonSet of the reclaim agent, as it is shipped. Its pods are those of a stand-in: the owner's script acts for them.
pub(crate) const AGENTS: &str = include_str!("../../../../deploy/node-agent/daemonset.yaml");

/// An API server with the CRDs of 5-Spot, Cluster API and the provider, the agents' DaemonSet, and a recorder.
pub struct SandboxEnvironment {
    pub api: ApiServer,
    pub clock: Clock,
    pub recorder: Recorder,
    pub metrics: Arc<Metrics>,
    seed: u64,
}

impl SandboxEnvironment {
    /// An API with every kind that is needed, at an instant.
    pub fn new(start: Timestamp, seed: u64) -> anyhow::Result<Self> {
        let clock = Clock::starting_at(start);
        let api = ApiServer::new(ApiServerConfig { seed, ..ApiServerConfig::new(clock.clone()) });
        let ours = serde_json::to_value(five_spot_api::crd()).context("failed to write our own CRD")?;
        let theirs = cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds());
        for crd in theirs.chain([ours]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
        }
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": SYSTEM_NAMESPACE}}));
        let account = json!({"metadata": {"name": "5spot-reclaim-agent"}});
        api.create(&format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts"), &account);
        let agents: Value = serde_saphyr::from_str(AGENTS).context("failed to read the agents' DaemonSet")?;
        api.create(&format!("/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/daemonsets"), &agents);
        Ok(Self { recorder: Recorder::new(clock.clone()), metrics: Arc::default(), api, clock, seed })
    }

    /// Creates the objects of the fleet.
    pub async fn create_fleet(&self, fleet: &SandboxFleet) -> Result<(), RefusedObject> {
        fleet.create_objects(&self.api.client("default")).await
    }

    /// Runs until something fails or `stop` is called; the controller is shut down gracefully.
    ///
    /// The recorder, the stand-ins and the script are one task each, with a fixed order inside: the same start and the
    /// same seed give the same run.
    pub async fn run(&self, fleet: SandboxFleet, stop: CancellationToken) -> anyhow::Result<()> {
        let client = || self.api.client("default");
        let recording = tokio::spawn(self.recorder.clone().follow(client()));
        let stand_ins = StandIns::new(client(), client(), self.clock.clone(), self.stand_in_settings());
        let actors = tokio::spawn(stand_ins.run());
        let controller = tokio::spawn(five_spot_controller::run(self.connection(), self.settings(), stop));
        let script =
            tokio::spawn(fleet::run(fleet.script, client(), self.clock.clone(), self.recorder.clone()));
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

    /// The time that steps take: about as long as on real machines, and different for every seed.
    fn stand_in_settings(&self) -> StandInSettings {
        let mut chance = Ids::new(self.seed);
        StandInSettings::new(Timing {
            provision: Duration::from_secs(40 + chance.below(50)),
            join: Duration::from_secs(15 + chance.below(30)),
            // Nobody here reads a lease, and each renewal is a write.
            heartbeat: Duration::from_hours(24),
            ..Timing::default()
        })
    }

    fn connection(&self) -> Connection {
        let service: Raw = BoxCloneSyncService::new(LongWatches::new(self.api.clone()));
        let clock = self.clock.clone();
        let dial = Arc::new(OneCluster(service.clone()));
        Connection::embedded(service, dial, Arc::new(move || clock.now()), "5spot-controller").with_observer(
            Arc::new(Observers { recorder: self.recorder.clone(), metrics: self.metrics.clone() }),
        )
    }

    /// The settings of the controller: there is one cluster, and every Node is in it.
    fn settings(&self) -> Settings {
        let management_nodes = vec![ANY_NAMESPACE.to_owned()];
        Settings { management_nodes, metrics: self.metrics.clone(), ..Settings::default() }
    }
}

/// Management and workload cluster are one: every kubeconfig leads there.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(std::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}
