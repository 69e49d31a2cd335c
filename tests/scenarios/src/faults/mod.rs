//! Everything that can go wrong, tried one thing at a time.
//!
//! A scenario is played once undisturbed. That numbers what can be aimed at: the controller's writes, the events of its
//! watches, the moments at which it is at work. From those a list of [`Case`]s is made, each of which is one more run in
//! which something goes wrong; it has to end as the undisturbed one did.

mod campaign;
mod clocks;
mod crashes;
mod fair;
mod kind;
mod neighbours;
mod orderings;
mod sample;
mod stale;
mod storms;
mod watches;

pub use campaign::{Failure, Options, Progress, Summary, Tally};
pub use fair::Fair;
pub use kind::Kind;
pub use sample::Sample;

use crate::embedded::{Disturbance, Layout, Run};
use crate::scenario::{Needs, Scenario};

/// One thing that goes wrong.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called among those of its kind.
    pub name: String,
    disturbance: Disturbance,
    judge: Judge,
}

/// What has to be true of a run besides that it ended as the undisturbed one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    /// Nothing else.
    SameEnd,
    /// There was at most one list more.
    OneList,
    /// See [`storms::judge`].
    Storm,
    /// See [`clocks::judge`].
    Clock,
}

impl Case {
    /// Plays it.
    pub fn try_on(&self, fair: &Fair) -> anyhow::Result<()> {
        let run = fair.play_again(&self.disturbance)?;
        match self.judge {
            Judge::SameEnd => Ok(()),
            Judge::OneList => watches::judge(fair, &run),
            Judge::Storm => storms::judge(fair, &self.disturbance, &run),
            Judge::Clock => clocks::judge(fair, &self.disturbance, &run),
        }
    }
}

/// Scenarios in which somebody is at work without a pause: virtual time stands still until that ends, and with it everything
/// that waits for a time.
const TIME_STANDS_STILL: [&str; 1] = ["taints_while_others_change_theirs"];

/// The cases of a kind: as many as there are, or a sample of them.
pub fn cases(kind: Kind, fair: &Fair, sample: Sample) -> anyhow::Result<Vec<Case>> {
    if TIME_STANDS_STILL.contains(&fair.scenario.name) {
        return Ok(Vec::new());
    }
    let all = match kind {
        Kind::Crashes => crashes::single(fair),
        Kind::Pairs => return crashes::pairs(fair, sample),
        Kind::Stale => stale::cases(fair, sample.seed),
        Kind::Watches => watches::cases(fair),
        Kind::Storms => storms::cases(fair, sample.seed),
        Kind::Clocks => clocks::cases(fair),
        Kind::Neighbours => neighbours::cases(),
        Kind::Orderings => return Ok(orderings::cases(fair, sample)),
    };
    Ok(sample.of(all))
}

/// The layouts in which a scenario can be played here; none if only the real Cluster API can play it.
pub fn layouts(scenario: &Scenario) -> &'static [Layout] {
    match scenario.needs {
        Needs::Anything | Needs::VirtualTime | Needs::WorldOfItsOwn => {
            &[Layout::OneCluster, Layout::TwoClusters]
        }
        Needs::TwoClusters => &[Layout::TwoClusters],
        Needs::RealClusterApi => &[],
    }
}

/// Writes, grouped: a pause of this many seconds separates what the controller does at one moment from what it does at
/// the next. What it tries again every five seconds, an eviction, is one moment.
const PAUSE_BETWEEN_MOMENTS: i64 = 6;

/// The moments at which the controller was at work in an undisturbed run, in milliseconds from its beginning.
fn moments(run: &Run) -> Vec<i64> {
    let Some(performance) = &run.performance else { return Vec::new() };
    let times = run.writes.iter().map(|write| write.time).filter(|time| *time <= performance.played);
    let mut moments: Vec<i64> = Vec::new();
    let mut last = None;
    for time in times.map(|time| time.duration_since(run.began)) {
        if last.is_none_or(|last| (time - last).as_secs() >= PAUSE_BETWEEN_MOMENTS) {
            moments.push(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        }
        last = Some(time);
    }
    moments
}
