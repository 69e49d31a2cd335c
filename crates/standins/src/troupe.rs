//! All actors together.

use super::agenda::play;
use super::cluster_api::ClusterApi;
use super::clusters::Clusters;
use super::kinds::Kind;
use super::kubelet::Kubelet;
use super::mishaps::{Mishaps, Notebook};
use super::provider::Provider;
use super::scenario::Scenario;
use super::stage::Stage;
use super::workloads::Workloads;
use five_spot_apiserver::clock::Clock;
use kube::Client;

/// Everybody who plays in a world: on the management cluster and on the workload cluster, which may be one and the
/// same.
#[derive(Clone)]
pub struct Troupe {
    management: Client,
    workload: Client,
    clock: Clock,
    scenario: Scenario,
    kubeconfig: Option<String>,
    mishaps: Mishaps,
}

impl Troupe {
    /// A troupe that plays a scenario.
    pub fn new(management: Client, workload: Client, clock: Clock, scenario: Scenario) -> Self {
        Self { management, workload, clock, scenario, kubeconfig: None, mishaps: Mishaps::default() }
    }

    /// Writes this beside every Cluster that it makes, as the way into the workload cluster.
    #[must_use]
    pub fn with_kubeconfig(self, kubeconfig: impl Into<String>) -> Self {
        Self { kubeconfig: Some(kubeconfig.into()), ..self }
    }

    /// What went wrong for its actors, and what they tried again.
    pub fn mishaps(&self) -> Mishaps {
        self.mishaps.clone()
    }

    /// Plays for as long as the future is polled.
    ///
    /// All play in one task and take turns in a fixed order. As tasks of their own they would go in the order in which
    /// the runtime wakes them, which is not the same in every run.
    pub async fn play(self) {
        let Self { management, workload, clock, scenario, kubeconfig, mishaps } = self;
        let stage = |actor, wanted| {
            let notebook = Notebook { actor, clock: clock.clone(), mishaps: mishaps.clone() };
            Stage::new(management.clone(), workload.clone(), wanted, notebook)
        };
        let nothing_custom = |_: &str, _: &str| false;
        let clusters = play(Clusters::new(kubeconfig), stage("clusters", Clusters::wants), scenario.clone());
        let cluster_api = play(
            ClusterApi::new(clock.clone(), scenario.clone()),
            stage("cluster-api", ClusterApi::wants).with_workload(Kind::node()),
            scenario.clone(),
        );
        let provider = play(
            Provider::new(clock.clone(), scenario.clone()),
            stage("provider", Provider::wants).with_workload(Kind::node()),
            scenario.clone(),
        );
        let workloads = play(
            Workloads::default(),
            stage("workloads", nothing_custom)
                .with_workload(Kind::deployment())
                .with_workload(Kind::replica_set())
                .with_workload(Kind::node())
                .with_workload(Kind::pod()),
            scenario.clone(),
        );
        let kubelet = play(
            Kubelet::new(clock.clone(), scenario.clone()),
            stage("kubelet", nothing_custom).with_workload(Kind::node()).with_workload(Kind::pod()),
            scenario,
        );
        futures::join!(clusters, cluster_api, provider, workloads, kubelet);
    }
}

impl std::fmt::Debug for Troupe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Troupe").field("scenario", &self.scenario).finish_non_exhaustive()
    }
}
