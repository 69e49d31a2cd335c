//! One run of a scenario in a sandbox of its own.

use super::{Disturbance, Embedded, Layout, SETTLES_WITHIN};
use crate::chronicle::{Chronicle, Count};
use crate::matrix::Cell;
use crate::perform::{Performance, in_order, perform_play, perform_with};
use crate::scenario::Scenario;
use crate::world::{World, Write};
use anyhow::{Context as _, anyhow, ensure};
use five_spot_apiserver::faults::{Outcome, RequestKind, Seen};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A watch that was started, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Where it looks.
    pub path: String,
    /// When each of its events came, bookmarks included.
    pub events: Vec<Timestamp>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// When it began.
    pub began: Timestamp,
    /// How it was played; nothing if its time had passed, as far as that is allowed.
    pub performance: Option<Performance>,
    /// How often each object came and went.
    pub counts: BTreeMap<String, Count>,
    /// What the controller wrote.
    pub writes: Vec<Write>,
    /// How many writes it tried, those included that never arrived.
    pub attempts: usize,
    /// What it watched, in the order in which the watches were started.
    pub watches: Vec<Watched>,
    /// What it asked for besides watches and whether anybody is there: when, and whether a fault was the answer.
    pub asked: Vec<(Timestamp, bool)>,
    /// What it asked for lists of from which a watch went on, each as often as it did.
    pub lists: Vec<String>,
}

/// Plays a scenario in a new sandbox, undisturbed or not.
pub fn play(scenario: &Scenario, layout: Layout, disturbance: &Disturbance) -> anyhow::Result<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let world = Embedded::new(layout, disturbance);
        let began = world.now();
        world.start_controller().await?;
        let chronicle = Chronicle::begin(&world);
        let told =
            |error: anyhow::Error| anyhow!("{error:#}\nthe controller wrote:\n{}", world.ledger.told());
        let played = perform_with(&world, scenario, &chronicle).await;
        let performance = match played {
            Ok(performance) => Some(performance),
            Err(error) if disturbance.may_fail => {
                let first = || format!("it is not in order after this: {error:#}");
                in_order(&world, scenario).await.with_context(first).map_err(told)?;
                let violations = chronicle.violations();
                ensure!(violations.is_empty(), "{}", violations.join("\n"));
                None
            }
            Err(error) => return Err(told(error)),
        };
        world.fate.check()?;
        if let Some(performance) = performance.as_ref().filter(|_| disturbance.keeps_time()) {
            let more = SETTLES_WITHIN * u32::try_from(world.fate.reordered()).unwrap_or(u32::MAX);
            performance.in_time(world.pace().time_factor, scenario, more).map_err(told)?;
        }
        let seen = world.plan.seen();
        Ok(Run {
            began,
            performance,
            counts: chronicle.counts(),
            writes: world.writes()?,
            attempts: world.fate.writes(),
            watches: watches(&seen),
            asked: asked(&seen),
            lists: seen.iter().filter(|one| begins_a_watch(one)).map(|one| what(&one.path)).collect(),
        })
    })
}

/// Does something in a new sandbox with two clusters and a running controller.
pub(crate) fn in_sandbox<T>(work: impl AsyncFnOnce(&Embedded) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let world = Embedded::new(Layout::TwoClusters, &Disturbance::default());
        world.start_controller().await?;
        work(&world).await
    })
}

/// Runs a cell of the emergency matrix in a new sandbox with two clusters.
pub fn play_cell(cell: &Cell) -> anyhow::Result<()> {
    in_sandbox(async |world| {
        let chronicle = Chronicle::begin(world);
        let played = perform_play(world, cell.run(world), &chronicle).await;
        played.map(drop).map_err(|error| anyhow!("{error:#}\nthe controller wrote:\n{}", world.ledger.told()))
    })
}

fn watches(seen: &[Seen]) -> Vec<Watched> {
    let watched = |one: &Seen| Watched { path: what(&one.path), events: one.events.clone() };
    seen.iter().filter(|one| one.kind() == RequestKind::Watch).map(watched).collect()
}

fn asked(seen: &[Seen]) -> Vec<(Timestamp, bool)> {
    let counts = |one: &&Seen| one.kind() != RequestKind::Watch && one.path != "/version";
    let told = |one: &Seen| (one.time, matches!(one.outcome, Outcome::Faulted(_)));
    seen.iter().filter(counts).map(told).collect()
}

/// A path without its query.
fn what(path: &str) -> String {
    path.split('?').next().unwrap_or_default().to_owned()
}

/// The page of a list from which a watch goes on. A look before a leap names a version if there is one, and asks for more.
const PAGE_OF_A_WATCH: &str = "limit=50";

/// Whether this is a list from which a watch goes on.
fn begins_a_watch(one: &Seen) -> bool {
    let query = one.path.split_once('?').map_or("", |(_, query)| query);
    let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    one.kind() == RequestKind::Read
        && query.split('&').any(|pair| pair == PAGE_OF_A_WATCH)
        && !has("resourceVersion")
        && !has("continue")
}
