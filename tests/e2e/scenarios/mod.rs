//! The scenarios on a real control plane: the controller as a separate process with the shipped identity and
//! roles, real Cluster API, real budgets, real garbage collection. The in-memory environment runs the same
//! scenarios in virtual time.

mod brake;
mod controller;
mod environment;
mod hand_over;
mod identities;
mod impairments;
mod journal;
mod matrix;
mod not_an_api;
mod old_cluster_api;
mod outage;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_scenarios::{Needs, Scenario, run_scenario};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use tokio::sync::Mutex;

pub(crate) use environment::{RealControlPlane, View};
pub(crate) use identities::kubeconfig_reader;

/// The number of tests that start before those with their own control plane.
const STARTERS: usize = 32;

/// The time limit, of which two minutes are the outage of an API server.
const LONG: Duration = Duration::from_mins(8);

/// Control planes are started one after the other.
static START: Mutex<()> = Mutex::const_new(());

/// The scenarios that also run with only v1beta1 of Cluster API: those that read or write its kinds.
const ON_OLD_CLUSTER_API: [&str; 10] = [
    "window_opens",
    "window_closes_and_drains",
    "deleted_while_active",
    "foreground_deletion_under_a_budget",
    "grace_runs_out_with_force",
    "taints_applied_and_changed",
    "rules_and_labels_of_cluster_api",
    "infrastructure_changed_by_replacement",
    "field_of_ours_edited_by_hand",
    "paused_by_machine",
];

/// The scenarios that also run with a controller that has Roles in its namespace and no further permissions.
const ROLES_ONLY: [&str; 8] = [
    "window_opens",
    "window_closes_and_drains",
    "deleted_while_active",
    "rules_and_labels_of_cluster_api",
    "paused_by_namespace",
    "emergency_reclaim",
    "claim_is_left_behind",
    "machine_is_refused",
];

/// The shipped identity of the controller.
pub(crate) async fn controller_identity(context: &TestContext) -> anyhow::Result<ServiceAccountIdentity> {
    identities::management(context).await
}

/// An identity for the Nodes of this context, with the shipped role.
pub(crate) async fn node_identity(
    context: &TestContext,
    account: &str,
) -> anyhow::Result<ServiceAccountIdentity> {
    identities::workload(context, account).await
}

pub(crate) fn tests() -> Vec<Test> {
    let scenarios = five_spot_scenarios::all();
    let alone = scenarios.iter().filter(|scenario| scenario.needs == Needs::ExclusiveEnvironment);
    let together = scenarios.iter().filter(|scenario| match scenario.needs {
        Needs::Anything | Needs::TwoClusters | Needs::RealClusterApi => true,
        Needs::VirtualTime | Needs::ExclusiveEnvironment | Needs::SeveralControllers => false,
    });
    let alone = alone.map(|scenario| test("own_control_plane", *scenario, run_alone).within(LONG));
    let together = together.map(|scenario| {
        test("", *scenario, |scenario, context| async move { run(scenario, context, View::Whole).await })
    });
    let roles_only =
        scenarios.iter().filter(|scenario| ROLES_ONLY.contains(&scenario.name)).map(|scenario| {
            let run = |scenario, context| async move { run(scenario, context, View::RolesOnly).await };
            test("roles_only", *scenario, run)
        });
    let old = format!("{}::own_control_plane::old_cluster_api", module_path!());
    let old = Test::new(&old, |_| run_on_old_cluster_api()).within(LONG);
    let mut tests: Vec<Test> = together
        .chain(roles_only)
        .chain(brake::tests())
        .chain(hand_over::tests())
        .chain(matrix::tests())
        .chain(outage::tests())
        .collect();
    // Those with their own control plane take longest, but at the start the other tests need the processors.
    let rest = tests.split_off(tests.len().min(STARTERS));
    tests.into_iter().chain(alone).chain([old]).chain(rest).collect()
}

fn test<F, R>(group: &str, scenario: Scenario, run: F) -> Test
where
    F: Fn(Scenario, Arc<TestContext>) -> R + Send + Sync + 'static,
    R: Future<Output = TestResult> + Send + 'static,
{
    let path = [module_path!(), group, scenario.name];
    let name: Vec<&str> = path.into_iter().filter(|part| !part.is_empty()).collect();
    Test::new(&name.join("::"), move |context| run(scenario, context))
}

async fn run(scenario: Scenario, context: Arc<TestContext>, view: View) -> TestResult {
    let real = RealControlPlane::start(Arc::clone(&context), view)
        .await
        .context("failed to set up the environment")?;
    let finished = run_scenario(&real, &scenario).await;
    // Boxed and named, so that a failure shows the log of the controller.
    finished.map(drop).with_context(|| real.failure_report())
}

/// Runs in a separate environment, which ends with this test.
async fn run_alone(scenario: Scenario, _: Arc<TestContext>) -> TestResult {
    let env = another_control_plane(scenario.name).await?;
    let finished = run_in(&env, scenario, View::Whole).await;
    env.stop().await?;
    finished
}

/// Runs all of them at once in a separate environment: after a single Machine that cannot be converted, which
/// some of them create, the API server does not serve v1beta1 of any.
async fn run_on_old_cluster_api() -> TestResult {
    let env = another_control_plane("old-cluster-api").await?;
    let scenarios = five_spot_scenarios::all().into_iter();
    let scenarios = scenarios.filter(|scenario| ON_OLD_CLUSTER_API.contains(&scenario.name));
    let runs = scenarios.map(|scenario| run_in(&env, scenario, View::OldClusterApi));
    let finished = futures::future::join_all(runs).await;
    env.stop().await?;
    ensure!(finished.len() == ON_OLD_CLUSTER_API.len(), "some of these scenarios do not exist any more");
    finished.into_iter().collect()
}

pub(crate) async fn another_control_plane(name: &str) -> anyhow::Result<Arc<TestClusters>> {
    let _turn = START.lock().await;
    Ok(TestClusters::start_another(name).await?)
}

async fn run_in(env: &Arc<TestClusters>, scenario: Scenario, view: View) -> TestResult {
    let context = Arc::new(env.test_context(scenario.name).await?);
    let finished = run(scenario, Arc::clone(&context), view).await;
    finished.with_context(|| format!("{}\n---- timeline\n{}", scenario.name, context.timeline()))
}
