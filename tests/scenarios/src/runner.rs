//! Runs a scenario, and checks the oracles.

use crate::environment::{Environment, Write};
use crate::history::{ObjectCount, ObjectHistory};
use crate::kinds::SCHEDULED_MACHINE;
use crate::matrix::Cell;
use crate::oracles;
use crate::scenario::{Ending, Scenario};
use crate::snapshot::Snapshot;
use anyhow::{Context as _, ensure};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The result of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The time of its start.
    pub began: Timestamp,
    /// The time at which it had been run, and only the oracles were left.
    pub finished: Timestamp,
    /// The time from its last deliberate step until then.
    pub took: Duration,
    /// The exit status.
    pub ending: Ending,
    /// The objects at the end.
    pub snapshot: Snapshot,
    /// The number of times each object was created and removed.
    pub counts: BTreeMap<String, ObjectCount>,
    /// The writes of the controller.
    pub writes: Vec<Write>,
}

/// The time after a failed scenario within which everything has to be in order again: a watch that lost an event is
/// restarted
/// within the hour.
const IN_ORDER_AFTER: Duration = Duration::from_mins(75);

/// The time for which a restarted controller is observed.
const NEW_BEGINNING: Duration = Duration::from_mins(10);

/// Checks a scenario that could not run to its end because its time had passed: nothing is left over, the
/// status is correct, and a restarted controller, which reads everything again, changes nothing. `usual` is how the scenario
/// ends undisturbed.
pub async fn in_order(env: &dyn Environment, usual: &Ending) -> anyhow::Result<()> {
    tokio::time::sleep(IN_ORDER_AFTER).await;
    if !usual.orphaned {
        oracles::orphans(env).await.context("no orphans")?;
        // An object that was released after its timeout cannot give its claim back; the next one takes it over.
        let is_released = env.get(SCHEDULED_MACHINE, &usual.object).await?.is_null();
        let usual = Ending { leaves_claim: usual.leaves_claim || is_released, ..usual.clone() };
        oracles::claims(env, &usual).await.context("no claims left over")?;
    }
    if !usual.without_cluster {
        oracles::nodes(env).await.context("no Nodes left behind")?;
    }
    oracles::status(env).await.context("status tells the truth")?;
    let before = Snapshot::take(env).await?;
    env.stop_controller().await?;
    env.start_controller().await?;
    tokio::time::sleep(NEW_BEGINNING).await;
    let differences = before.differences(&Snapshot::take(env).await?);
    ensure!(differences.is_empty(), "a controller that began anew saw more:\n{}", differences.join("\n"));
    Ok(())
}

impl ScenarioResult {
    /// Checks that the scenario ended in time, with some more time where something was slowed down on purpose.
    pub fn in_time(&self, world_factor: u32, scenario: &Scenario, more: Duration) -> anyhow::Result<()> {
        let within = scenario.within * world_factor + more;
        ensure!(
            self.took <= within,
            "it took {:?} from the last step to the end instead of {within:?}",
            self.took
        );
        Ok(())
    }
}

/// Runs a scenario in an environment with a running controller, and checks the oracles. It has to end in
/// time.
pub async fn run_scenario(env: &dyn Environment, scenario: &Scenario) -> anyhow::Result<ScenarioResult> {
    let result = run_scenario_with(env, scenario, &ObjectHistory::begin(env)).await?;
    result.in_time(env.pace().time_factor, scenario, Duration::ZERO)?;
    Ok(result)
}

/// Runs a cell of the emergency matrix in an environment with a running controller, and checks the oracles.
pub async fn run_matrix_cell(env: &dyn Environment, cell: &Cell) -> anyhow::Result<ScenarioResult> {
    run_and_check(env, cell.run(env), &ObjectHistory::begin(env)).await
}

/// The same with a history that the caller reads too.
pub(crate) async fn run_scenario_with(
    env: &dyn Environment,
    scenario: &Scenario,
    history: &ObjectHistory,
) -> anyhow::Result<ScenarioResult> {
    run_and_check(env, (scenario.run)(env), history).await
}

/// Runs anything that ends with one object, and checks the oracles.
pub(crate) async fn run_and_check(
    env: &dyn Environment,
    run: BoxFuture<'_, anyhow::Result<Ending>>,
    history: &ObjectHistory,
) -> anyhow::Result<ScenarioResult> {
    let began = env.now();
    let ending = run.await?;
    let finished = env.now();
    let step = env.steps().latest().unwrap_or(began);
    let took = Duration::try_from(finished.duration_since(step)).unwrap_or_default();
    oracles::silence(env).await.context("silence after the end")?;
    oracles::ending(env, &ending, history).await.context("the end")?;
    oracles::leftovers(env, &ending).await.context("nothing left over")?;
    oracles::status(env).await.context("status tells the truth")?;
    let snapshot = Snapshot::take(env).await?;
    Ok(ScenarioResult {
        began,
        finished,
        took,
        ending,
        snapshot,
        counts: history.counts(),
        writes: env.writes()?,
    })
}
