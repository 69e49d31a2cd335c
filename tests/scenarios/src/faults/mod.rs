//! Fault injection, one fault at a time.
//!
//! A scenario is run once undisturbed. This run numbers the possible targets: the controller's writes, the events of
//! its watches, the moments at which it is active. They give a list of [`Case`]s, each of which is one more run with a
//! fault; it has to end as the undisturbed one did.

mod baseline;
mod campaign;
mod clocks;
mod crashes;
mod kind;
mod leaders;
mod neighbours;
mod orderings;
mod sample;
mod stale;
mod storms;
mod watches;

pub use baseline::Baseline;
pub use campaign::{FailedRun, Options, Progress, Summary, Tally};
pub use kind::CampaignKind;
pub use sample::Sample;

use crate::in_memory::{Disturbance, Layout, Run};
use crate::scenario::{Needs, Scenario};

/// One fault.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, unique within its kind.
    pub name: String,
    disturbance: Disturbance,
    judge: Judge,
}

/// Further conditions on a run, besides ending as the undisturbed one did.
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
    /// Runs it.
    pub fn try_on(&self, baseline: &Baseline) -> anyhow::Result<()> {
        let run = baseline.run_again(&self.disturbance)?;
        match self.judge {
            Judge::SameEnd => Ok(()),
            Judge::OneList => watches::judge(baseline, &run),
            Judge::Storm => storms::judge(baseline, &self.disturbance, &run),
            Judge::Clock => clocks::judge(baseline, &self.disturbance, &run),
        }
    }
}

/// The cases of a kind: as many as there are, or a sample of them.
pub fn cases(kind: CampaignKind, baseline: &Baseline, sample: Sample) -> anyhow::Result<Vec<Case>> {
    if sample.size == Some(0) {
        return Ok(Vec::new());
    }
    let all = match kind {
        CampaignKind::Crashes => crashes::single(baseline),
        CampaignKind::Pairs => return crashes::pairs(baseline, sample),
        CampaignKind::Stale => stale::cases(baseline, sample.seed),
        CampaignKind::Watches => watches::cases(baseline),
        CampaignKind::Storms => storms::cases(baseline, sample.seed),
        CampaignKind::Clocks => clocks::cases(baseline),
        CampaignKind::Neighbours => neighbours::cases(baseline),
        CampaignKind::Leaders => leaders::cases(baseline)?,
        CampaignKind::Orderings => return Ok(orderings::cases(baseline, sample)),
    };
    Ok(sample.of(all))
}

/// The layouts in which a scenario can be run here; none if only the real Cluster API can run it.
pub fn layouts(scenario: &Scenario) -> &'static [Layout] {
    match scenario.needs {
        Needs::Anything | Needs::VirtualTime | Needs::ExclusiveEnvironment => {
            &[Layout::OneCluster, Layout::TwoClusters]
        }
        Needs::TwoClusters | Needs::SeveralControllers => &[Layout::TwoClusters],
        Needs::RealClusterApi => &[],
    }
}

/// Writes, grouped: a pause of this many seconds separates what the controller does at one moment from what it does at
/// the next. Evictions that it retries every five seconds count as one moment.
const PAUSE_BETWEEN_MOMENTS: i64 = 6;

/// The moments at which the controller was at work in an undisturbed run, in milliseconds from its beginning.
fn moments(run: &Run) -> Vec<i64> {
    let Some(result) = &run.result else { return Vec::new() };
    let times = run.writes.iter().map(|write| write.time).filter(|time| *time <= result.finished);
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
