//! The emergency matrix on the real control plane: the cells that end within minutes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_scenarios::matrix::{Cell, Emergency, Obstacle, cells};
use five_spot_scenarios::{Impairment, run_matrix_cell};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;

use super::environment::{RealControlPlane, View};
use super::{LONG, another_control_plane};

/// The longest time for the effect of a cell here.
const LONGEST: Duration = Duration::from_secs(65);

pub(super) fn tests() -> Vec<Test> {
    cells().into_iter().filter(|cell| is_meant(*cell)).map(test).collect()
}

/// Returns true if a cell is run here: kill switches and reclaims with every obstacle.
fn is_meant(cell: Cell) -> bool {
    let is_emergency = match cell.emergency {
        Emergency::KillSwitch => true,
        Emergency::Reclaim => !needs_own_control_plane(cell.obstacle),
        Emergency::Deletion | Emergency::FinalizerBound | Emergency::OrphaningDeletion => false,
    };
    is_emergency && !needs_slow_api_server(cell.obstacle) && cell.expected().machine_deleted <= Some(LONGEST)
}

/// Returns true if an obstacle delays answers of the API server.
fn needs_slow_api_server(obstacle: Obstacle) -> bool {
    use Impairment::{EventsHang, MachinePatchesHang, SlowManagement, StatusHangs};
    matches!(obstacle, Obstacle::Impaired(SlowManagement | MachinePatchesHang | StatusHangs | EventsHang))
}

/// Returns true if an obstacle disables a component that all contexts need.
fn needs_own_control_plane(obstacle: Obstacle) -> bool {
    matches!(obstacle, Obstacle::ProviderKindGone | Obstacle::Impaired(Impairment::ClusterApi))
}

fn test(cell: Cell) -> Test {
    let group = if needs_own_control_plane(cell.obstacle) { "::own_control_plane" } else { "" };
    let name = format!("{}{group}::{cell}", module_path!());
    if group.is_empty() {
        Test::new(&name, move |context| run(cell, context)).within(LONG)
    } else {
        Test::new(&name, move |_| play_alone(cell)).within(LONG)
    }
}

async fn run(cell: Cell, context: Arc<TestContext>) -> TestResult {
    let real = RealControlPlane::start(Arc::clone(&context), View::Whole)
        .await
        .context("failed to set up the environment")?;
    let finished = run_matrix_cell(&real, &cell).await;
    finished.map(drop).with_context(|| real.failure_report())
}

async fn play_alone(cell: Cell) -> TestResult {
    let name = cell.to_string().replace('/', "-");
    let env = another_control_plane(&name).await?;
    let context = Arc::new(env.test_context(&name).await?);
    let finished = run(cell, Arc::clone(&context)).await;
    let finished = finished.with_context(|| format!("{cell}\n---- timeline\n{}", context.timeline()));
    env.stop().await?;
    finished
}
