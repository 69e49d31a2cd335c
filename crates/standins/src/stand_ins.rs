//! The stand-ins together.

use super::cluster_api::ClusterApi;
use super::clusters::Clusters;
use super::context::ActorContext;
use super::errors::{ErrorLog, ErrorRecorder};
use super::kinds::Kind;
use super::kubelet::Kubelet;
use super::provider::Provider;
use super::settings::StandInSettings;
use super::work_queue::run;
use super::workloads::Workloads;
use five_spot_apiserver::clock::Clock;
use kube::Client;

/// All stand-ins of a management cluster and a workload cluster, which may be the same.
#[derive(Clone)]
pub struct StandIns {
    management: Client,
    workload: Client,
    clock: Clock,
    settings: StandInSettings,
    kubeconfig: Option<String>,
    errors: ErrorLog,
}

impl StandIns {
    /// Creates stand-ins with these settings.
    pub fn new(management: Client, workload: Client, clock: Clock, settings: StandInSettings) -> Self {
        Self { management, workload, clock, settings, kubeconfig: None, errors: ErrorLog::default() }
    }

    /// Writes this kubeconfig Secret for every Cluster that the stand-ins create, as access to the workload
    /// cluster.
    #[must_use]
    pub fn with_kubeconfig(self, kubeconfig: impl Into<String>) -> Self {
        Self { kubeconfig: Some(kubeconfig.into()), ..self }
    }

    /// The errors of the stand-ins, all of which were retried.
    pub fn errors(&self) -> ErrorLog {
        self.errors.clone()
    }

    /// Runs for as long as the future is polled.
    ///
    /// All actors run in one task and are polled in a fixed order. As separate tasks, they would run in the
    /// order in which the runtime wakes them, which differs between runs.
    pub async fn run(self) {
        let Self { management, workload, clock, settings, kubeconfig, errors } = self;
        let context = |actor, wanted| {
            let recorder = ErrorRecorder { actor, clock: clock.clone(), errors: errors.clone() };
            ActorContext::new(management.clone(), workload.clone(), wanted, recorder)
        };
        let nothing_custom = |_: &str, _: &str| false;
        let clusters = run(Clusters::new(kubeconfig), context("clusters", Clusters::wants), settings.clone());
        let cluster_api = run(
            ClusterApi::new(clock.clone(), settings.clone()),
            context("cluster-api", ClusterApi::wants).with_workload(Kind::node()),
            settings.clone(),
        );
        let provider = run(
            Provider::new(clock.clone(), settings.clone()),
            context("provider", Provider::wants).with_workload(Kind::node()),
            settings.clone(),
        );
        let workloads = run(
            Workloads::default(),
            context("workloads", nothing_custom)
                .with_workload(Kind::deployment())
                .with_workload(Kind::replica_set())
                .with_workload(Kind::daemon_set())
                .with_workload(Kind::node())
                .with_workload(Kind::pod()),
            settings.clone(),
        );
        let kubelet = run(
            Kubelet::new(clock.clone(), settings.clone()),
            context("kubelet", nothing_custom).with_workload(Kind::node()).with_workload(Kind::pod()),
            settings,
        );
        futures::join!(clusters, cluster_api, provider, workloads, kubelet);
    }
}

impl std::fmt::Debug for StandIns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StandIns").field("settings", &self.settings).finish_non_exhaustive()
    }
}
