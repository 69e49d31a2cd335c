//! The emergency matrix on the real control plane: the cells that end within minutes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_scenarios::matrix::{Cell, Emergency, Hindrance, cells};
use five_spot_scenarios::{Impairment, perform_cell};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::world::Scene;

use super::world::{Real, View};
use super::{LONG, another_world};

/// The longest that a cell may wait for its effect here.
const LONGEST: Duration = Duration::from_secs(65);

pub(super) fn tests() -> Vec<Test> {
    cells().into_iter().filter(|cell| is_meant(*cell)).map(test).collect()
}

/// Whether a cell is run here: kill switches and reclaims with everything that can be broken.
fn is_meant(cell: Cell) -> bool {
    let is_emergency = match cell.emergency {
        Emergency::KillSwitch => true,
        Emergency::Reclaim => !needs_world_of_its_own(cell.hindrance),
        Emergency::Deletion | Emergency::FinalizerBound | Emergency::OrphaningDeletion => false,
    };
    is_emergency
        && cell.hindrance != Hindrance::Impaired(Impairment::SlowManagement)
        && cell.expected().machine_deleted <= Some(LONGEST)
}

/// Whether a hindrance takes away what every scene needs.
fn needs_world_of_its_own(hindrance: Hindrance) -> bool {
    matches!(hindrance, Hindrance::ProviderKindGone | Hindrance::Impaired(Impairment::ClusterApi))
}

fn test(cell: Cell) -> Test {
    let group = if needs_world_of_its_own(cell.hindrance) { "::world_of_its_own" } else { "" };
    let name = format!("{}{group}::{cell}", module_path!());
    if group.is_empty() {
        Test::new(&name, move |scene| play(cell, scene)).within(LONG)
    } else {
        Test::new(&name, move |_| play_alone(cell)).within(LONG)
    }
}

async fn play(cell: Cell, scene: Arc<Scene>) -> TestResult {
    let real = Real::start(Arc::clone(&scene), View::Whole).await.context("failed to set the stage")?;
    let played = perform_cell(&real, &cell).await;
    played.map(drop).with_context(|| real.told())
}

async fn play_alone(cell: Cell) -> TestResult {
    let name = cell.to_string().replace('/', "-");
    let world = another_world(&name).await?;
    let scene = Arc::new(world.scene(&name).await?);
    let played = play(cell, Arc::clone(&scene)).await;
    let played = played.with_context(|| format!("{cell}\n---- timeline\n{}", scene.timeline()));
    world.stop().await?;
    played
}
