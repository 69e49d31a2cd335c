//! One run of a scenario in its own in-memory environment.

use super::{Disturbance, InMemory, Layout, SETTLES_WITHIN};
use crate::environment::{Environment, Write};
use crate::history::{ObjectCount, ObjectHistory};
use crate::matrix::Cell;
use crate::runner::{ScenarioResult, in_order, run_and_check, run_scenario_with};
use crate::scenario::{Controllers, Ending, Scenario};
use anyhow::{Context as _, anyhow, ensure};
use five_spot_apiserver::faults::{RequestKind, RequestOutcome, Seen};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A watch that was started, and its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchLog {
    /// Its path.
    pub path: String,
    /// The time at which each of its events arrived, bookmarks included.
    pub events: Vec<Timestamp>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The time of its start.
    pub began: Timestamp,
    /// The result; `None` if it could not run to its end, where that is allowed.
    pub result: Option<ScenarioResult>,
    /// The number of times each object was created and removed.
    pub counts: BTreeMap<String, ObjectCount>,
    /// The writes of the controller.
    pub writes: Vec<Write>,
    /// The number of attempted writes, including those that never arrived.
    pub attempts: usize,
    /// Its watches, in the order in which they were started.
    pub watches: Vec<WatchLog>,
    /// Its requests other than watches and `/version`: the time, and true if a fault was the answer.
    pub asked: Vec<(Timestamp, bool)>,
    /// The lists from which a watch continued, one entry for each.
    pub lists: Vec<String>,
}

/// Runs a scenario in a new in-memory environment, undisturbed or not.
pub fn run(scenario: &Scenario, layout: Layout, disturbance: &Disturbance) -> anyhow::Result<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let controllers = match scenario.controllers {
            Controllers::One if disturbance.standby => Controllers::Replicas(2),
            controllers @ (Controllers::One | Controllers::Replicas(_) | Controllers::Shards(_)) => {
                controllers
            }
        };
        let env = InMemory::new(layout, controllers, disturbance);
        let began = env.now();
        env.start_controller().await?;
        let history = ObjectHistory::begin(&env);
        let with_writes =
            |error: anyhow::Error| anyhow!("{error:#}\nthe controller wrote:\n{}", env.write_log.list());
        let finished = run_scenario_with(&env, scenario, &history).await;
        let result = match finished {
            Ok(result) => Some(result),
            Err(error) if disturbance.may_fail => {
                let first = || format!("it is not in order after this: {error:#}");
                let usual = disturbance.usual_ending.clone().unwrap_or_else(|| Ending::gone(""));
                env.end_outages();
                in_order(&env, &usual).await.with_context(first).map_err(with_writes)?;
                let violations = history.violations();
                ensure!(violations.is_empty(), "{}", violations.join("\n"));
                let doubled = history.doubled();
                ensure!(doubled.is_empty() || usual.doubled, "lent twice: {}", doubled.join("\n"));
                None
            }
            Err(error) => return Err(with_writes(error)),
        };
        env.injector.check()?;
        env.fleet.check(disturbance.leader_fault.is_some()).await.map_err(with_writes)?;
        if let Some(result) = result.as_ref().filter(|_| disturbance.keeps_time()) {
            let more = SETTLES_WITHIN * u32::try_from(env.injector.reordered()).unwrap_or(u32::MAX);
            result
                .in_time(env.pace().time_factor * disturbance.time_factor(), scenario, more)
                .map_err(with_writes)?;
        }
        let seen = env.plan.seen();
        Ok(Run {
            began,
            result,
            counts: history.counts(),
            writes: env.writes()?,
            attempts: env.injector.writes(),
            watches: watches(&seen),
            asked: asked(&seen),
            lists: seen.iter().filter(|one| begins_a_watch(one)).map(|one| what(&one.path)).collect(),
        })
    })
}

/// Does something in a new in-memory environment with two clusters and a running controller.
pub(crate) fn in_memory<T>(work: impl AsyncFnOnce(&InMemory) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let env = InMemory::new(Layout::TwoClusters, Controllers::One, &Disturbance::default());
        env.start_controller().await?;
        work(&env).await
    })
}

/// Runs a cell of the emergency matrix in a new in-memory environment with two clusters.
pub fn run_cell(cell: &Cell) -> anyhow::Result<()> {
    in_memory(async |env| {
        let history = ObjectHistory::begin(env);
        let finished = run_and_check(env, cell.run(env), &history).await;
        finished
            .map(drop)
            .map_err(|error| anyhow!("{error:#}\nthe controller wrote:\n{}", env.write_log.list()))
    })
}

fn watches(seen: &[Seen]) -> Vec<WatchLog> {
    let watched = |one: &Seen| WatchLog { path: what(&one.path), events: one.events.clone() };
    seen.iter().filter(|one| one.kind() == RequestKind::Watch).map(watched).collect()
}

fn asked(seen: &[Seen]) -> Vec<(Timestamp, bool)> {
    let counts = |one: &&Seen| one.kind() != RequestKind::Watch && one.path != "/version";
    let time_and_fault = |one: &Seen| (one.time, matches!(one.outcome, RequestOutcome::Faulted(_)));
    seen.iter().filter(counts).map(time_and_fault).collect()
}

/// A path without its query.
fn what(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

/// The page size of a list from which a watch continues. Live reads before an action name a version, if there is one,
/// and use larger pages.
const PAGE_OF_A_WATCH: &str = "limit=50";

/// Returns true if this is a list from which a watch continues.
fn begins_a_watch(one: &Seen) -> bool {
    let query = one.path.split_once('?').map_or("", |(_, query)| query);
    let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    one.kind() == RequestKind::Read
        && query.split('&').any(|pair| pair == PAGE_OF_A_WATCH)
        && !has("resourceVersion")
        && !has("continue")
}
