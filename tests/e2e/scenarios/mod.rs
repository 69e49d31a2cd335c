//! The scenarios that the sandbox plays in virtual time, on a real control plane: the controller as a process of its
//! own, with the identity and the roles that we ship, real Cluster API, real budgets, real garbage collection.

mod controller;
mod identities;
mod journal;
mod world;

use std::sync::Arc;

use anyhow::Context as _;
use five_spot_scenarios::{Needs, Scenario, perform};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::world::Scene;
use world::Real;

/// The identity of the controller, as it is shipped.
pub(crate) async fn controller_identity(scene: &Scene) -> anyhow::Result<ServiceAccountIdentity> {
    identities::management(scene).await
}

/// An identity for the Nodes of this scene, with the role that is shipped.
pub(crate) async fn node_identity(scene: &Scene, account: &str) -> anyhow::Result<ServiceAccountIdentity> {
    identities::workload(scene, account).await
}

pub(crate) fn tests() -> Vec<Test> {
    let playable = |scenario: &Scenario| match scenario.needs {
        Needs::Anything | Needs::TwoClusters | Needs::RealClusterApi => true,
        Needs::VirtualTime => false,
    };
    five_spot_scenarios::all().into_iter().filter(playable).map(test).collect()
}

fn test(scenario: Scenario) -> Test {
    let name = format!("{}::{}", module_path!(), scenario.name);
    Test::new(&name, move |scene| play(scenario, scene))
}

async fn play(scenario: Scenario, scene: Arc<Scene>) -> TestResult {
    let real = Real::start(Arc::clone(&scene)).await.context("failed to set the stage")?;
    let played = perform(&real, &scenario).await;
    // Boxed and named, so that a failure shows what the controller had to say.
    played.map(drop).with_context(|| real.told())
}
