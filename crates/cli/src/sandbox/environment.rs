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

/// The DaemonSet of the reclaim agent, as it is shipped. A stand-in creates its pods; the demo script acts
/// for the agents.
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
    /// Creates an API server with all required kinds, at `start`.
    pub fn new(start: Timestamp, seed: u64) -> anyhow::Result<Self> {
        let clock = Clock::starting_at(start);
        let api = ApiServer::new(ApiServerConfig { seed, ..ApiServerConfig::new(clock.clone()) });
        let ours = serde_json::to_value(five_spot_api::crd())
            .context("failed to serialise the ScheduledMachine CRD")?;
        let theirs = cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds());
        for crd in theirs.chain([ours]) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
        }
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": SYSTEM_NAMESPACE}}));
        let account = json!({"metadata": {"name": "5spot-reclaim-agent"}});
        api.create(&format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts"), &account);
        let agents: Value =
            serde_saphyr::from_str(AGENTS).context("failed to parse the DaemonSet of the reclaim agent")?;
        api.create(&format!("/apis/apps/v1/namespaces/{SYSTEM_NAMESPACE}/daemonsets"), &agents);
        Ok(Self { recorder: Recorder::new(clock.clone()), metrics: Arc::default(), api, clock, seed })
    }

    /// Creates the objects of the fleet.
    pub async fn create_fleet(&self, fleet: &SandboxFleet) -> Result<(), RefusedObject> {
        fleet.create_objects(&self.api.client("default")).await
    }

    /// Runs until something fails or `stop` is cancelled; then shuts the controller down gracefully.
    ///
    /// The recorder, the stand-ins and the script are one task each and poll their inputs in a fixed order:
    /// the same start and seed give the same run.
    pub async fn run(&self, fleet: SandboxFleet, stop: CancellationToken) -> anyhow::Result<()> {
        let client = || self.api.client("default");
        let recording = tokio::spawn(self.recorder.clone().follow(client()));
        let stand_ins = StandIns::new(client(), client(), self.clock.clone(), self.stand_in_settings());
        let actors = tokio::spawn(stand_ins.run());
        let controller = tokio::spawn(five_spot_controller::run(self.connection(), self.settings(), stop));
        let script =
            tokio::spawn(fleet::run(fleet.script, client(), self.clock.clone(), self.recorder.clone()));
        let scripted = async {
            // The script may end; the run continues.
            script.await.context("the demo script panicked")??;
            std::future::pending::<anyhow::Result<()>>().await
        };
        let result = tokio::select! {
            biased;
            ended = controller => match ended {
                Ok(result) => result.context("the controller failed"),
                Err(error) => Err(error).context("the controller panicked"),
            },
            ended = recording => ended.context("the recorder panicked").flatten(),
            ended = scripted => ended,
            ended = actors => ended.context("the stand-ins panicked"),
        };
        result
    }

    /// The delays of the stand-ins: about as long as with real machines, and different for every seed.
    fn stand_in_settings(&self) -> StandInSettings {
        let mut chance = Ids::new(self.seed);
        StandInSettings::new(Timing {
            provision: Duration::from_secs(40 + chance.below(50)),
            join: Duration::from_secs(15 + chance.below(30)),
            // No component in the sandbox reads node leases, and each renewal is a write.
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

    /// The settings of the controller. There is one cluster, which contains every Node.
    fn settings(&self) -> Settings {
        let management_nodes = vec![ANY_NAMESPACE.to_owned()];
        Settings { management_nodes, metrics: self.metrics.clone(), ..Settings::default() }
    }
}

/// The connector for a sandbox in which the management cluster is also the workload cluster: every kubeconfig
/// leads to it.
struct OneCluster(Raw);

impl Dial for OneCluster {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(std::future::ready(Ok(Route::Embedded(self.0.clone()))))
    }
}
