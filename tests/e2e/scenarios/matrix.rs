//! The emergency matrix on the real control plane: the cells that end within minutes, and on demand some that take longer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_scenarios::matrix::{Cell, MatrixEmergency, Obstacle, cells};
use five_spot_scenarios::{Impairment, run_matrix_cell};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;

use super::environment::{RealControlPlane, View};
use super::{LONG, another_control_plane};

/// The longest time for the effect of a cell here.
const LONGEST: Duration = Duration::from_secs(65);

/// The environment variable that adds the cells that take long.
const LONG_CELLS: &str = "FIVE_SPOT_LONG_CELLS";

/// The time limit of a cell that waits for the finalizer timeout.
const VERY_LONG: Duration = Duration::from_mins(30);

pub(super) fn tests() -> Vec<Test> {
    cells().into_iter().filter(|cell| is_meant(*cell)).map(test).collect()
}

/// Returns true if a cell is run here: every one that ends in time on the control plane of all tests, and the kill switches on
/// one of their own.
fn is_meant(cell: Cell) -> bool {
    if needs_slow_api_server(cell.obstacle) {
        return false;
    }
    if is_long(cell) {
        return std::env::var_os(LONG_CELLS).is_some();
    }
    let expected = cell.expected();
    let bounds = [expected.machine_deleted, expected.object_gone];
    let is_possible =
        cell.emergency == MatrixEmergency::KillSwitch || !needs_own_control_plane(cell.obstacle);
    is_possible && bounds.into_iter().flatten().all(|bound| bound <= LONGEST)
}

/// Returns true if a cell is run on demand only: it takes more than ten minutes, or a control plane of its own.
fn is_long(cell: Cell) -> bool {
    match cell.emergency {
        MatrixEmergency::Deletion => cell.obstacle == Obstacle::WorkloadIsAnother,
        MatrixEmergency::FinalizerBound => matches!(
            cell.obstacle,
            Obstacle::Impaired(Impairment::StatusTooLarge)
                | Obstacle::WorkloadHangs
                | Obstacle::ClusterPaused
        ),
        MatrixEmergency::Reclaim => needs_own_control_plane(cell.obstacle),
        MatrixEmergency::KillSwitch | MatrixEmergency::OrphaningDeletion => false,
    }
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
    let limit = if is_long(cell) { VERY_LONG } else { LONG };
    if group.is_empty() {
        Test::new(&name, move |context| run(cell, context)).within(limit)
    } else {
        Test::new(&name, move |_| play_alone(cell)).within(limit)
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
