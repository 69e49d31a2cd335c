//! A scenario in bad weather: it is played undisturbed, and then with requests, watches or clocks that go wrong. It has
//! to end the same.

use crate::embedded::{Disturbance, Jump, Layout, Storm, comings_and_goings, play};
use crate::perform::Performance;
use crate::scenario::Scenario;
use crate::world::Write;
use anyhow::{Context as _, ensure};
use five_spot_sandbox::faults::{Fault, RequestKind, Rule, Trigger, WatchFault};
use http::StatusCode;
use jiff::SignedDuration;
use std::time::Duration;

/// When a storm begins: just before the first boundary, when everything is in its place.
const STORM_BEGINS: Duration = Duration::from_secs(35);

/// How long a storm lasts.
const STORM: Duration = Duration::from_mins(10);

/// How soon after a storm the controller has to be at work again.
const AT_WORK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// The most writes in a second.
const MOST_WRITES_A_SECOND: usize = 20;

/// A scenario, and how it ends in fair weather.
#[derive(Clone, Debug)]
pub struct Fair {
    scenario: Scenario,
    layout: Layout,
    performance: Performance,
}

impl Fair {
    /// Plays a scenario undisturbed.
    pub fn play(scenario: Scenario, layout: Layout) -> anyhow::Result<Self> {
        let performance = play(&scenario, layout, &Disturbance::default()).context("undisturbed")?;
        Ok(Self { scenario, layout, performance })
    }

    /// Plays it disturbed: it has to end the same, and to make and remove as much.
    fn and_disturbed(&self, disturbance: &Disturbance) -> anyhow::Result<Performance> {
        let disturbed = play(&self.scenario, self.layout, disturbance)?;
        let differences = self.performance.snapshot.differences(&disturbed.snapshot);
        ensure!(differences.is_empty(), "it ended differently:\n{}", differences.join("\n"));
        ensure!(
            disturbed.counts == self.performance.counts,
            "objects came and went {:?} instead of {:?}",
            disturbed.counts,
            self.performance.counts
        );
        Ok(disturbed)
    }
}

/// Every other read is answered from `lag` changes ago. Not all of them: a world in which nothing changes until a read
/// is true, and no read is true until something changes, stands still.
pub fn stale_reads(fair: &Fair, lag: u64) -> anyhow::Result<()> {
    let rule = Rule {
        kind: RequestKind::Read,
        path: String::new(),
        trigger: Trigger::PerMille(500),
        fault: Fault::StaleRead(lag),
    };
    fair.and_disturbed(&Disturbance::rule(rule)).map(drop)
}

/// What can happen to a watch at its event of this number.
pub fn watch_faults(event: u64) -> [WatchFault; 5] {
    [
        WatchFault::LoseEvent(event),
        WatchFault::DelayEvent(event, Duration::from_secs(30)),
        WatchFault::CloseBefore(event),
        WatchFault::HangBefore(event),
        WatchFault::GoneBefore(event),
    ]
}

/// The watch of this number, counted from the start, goes wrong.
pub fn watch_fails(fair: &Fair, watch: u64, fault: WatchFault) -> anyhow::Result<()> {
    let trigger = Trigger::Nth(watch);
    let rule = Rule { kind: RequestKind::Watch, path: String::new(), trigger, fault: Fault::Watch(fault) };
    fair.and_disturbed(&Disturbance::rule(rule)).map(drop)
}

/// What a server or a network can do to a request.
pub fn request_faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("409", Fault::Refuse(StatusCode::CONFLICT, None)),
        ("429", Fault::Refuse(StatusCode::TOO_MANY_REQUESTS, Some(1))),
        ("500", Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR, None)),
        ("503", Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None)),
        ("504", Fault::Refuse(StatusCode::GATEWAY_TIMEOUT, None)),
        ("reset", Fault::DropBefore),
        ("lost_reply", Fault::DropAfter),
        ("timeout", Fault::Hang),
    ]
}

/// So many of a thousand requests fail, for ten minutes from the start. Whatever is left to do then is begun within a
/// minute, and at no time are there more than a few writes a second.
pub fn storm(fair: &Fair, per_mille: u64, fault: Fault, seed: u64) -> anyhow::Result<()> {
    let storm = Storm { per_mille, fault, after: STORM_BEGINS, lasting: STORM };
    let disturbance = Disturbance { storm: Some(storm), seed, ..Disturbance::default() };
    let performance = fair.and_disturbed(&disturbance)?;
    let busiest = busiest_second(&performance.writes);
    ensure!(busiest <= MOST_WRITES_A_SECOND, "{busiest} writes in a second");
    let over = performance.began.saturating_add(SignedDuration::try_from(STORM_BEGINS + STORM)?)?;
    let finished = performance.writes.iter().rev().find(|write| write.code.is_some_and(|code| code < 300));
    if let Some(next) = performance.writes.iter().find(|write| write.time >= over)
        && finished.is_some_and(|last| last.time >= over)
    {
        let waited = next.time.duration_since(over);
        ensure!(waited <= AT_WORK_AGAIN, "the first write came {waited} after the storm: {next}");
    }
    Ok(())
}

fn busiest_second(writes: &[Write]) -> usize {
    let second = SignedDuration::from_secs(1);
    let within = |first: &Write| {
        writes
            .iter()
            .filter(|write| write.time >= first.time && write.time.duration_since(first.time) < second)
            .count()
    };
    writes.iter().map(within).max().unwrap_or(0)
}

/// The controller's clock is wrong by `by`, for two minutes or for good. Whatever else comes of that, no boundary is
/// crossed twice: there is at most one Machine, which comes and goes at most once.
pub fn clock_jumps(
    scenario: &Scenario,
    layout: Layout,
    after: Duration,
    lasting: Duration,
    by: SignedDuration,
) -> anyhow::Result<()> {
    let jump = Jump { after, until: after.saturating_add(lasting), by };
    let disturbance = Disturbance { jump: Some(jump), ..Disturbance::default() };
    for (object, count) in comings_and_goings(scenario, layout, &disturbance)? {
        ensure!(count.made <= 1 && count.removed <= 1, "{object} came and went {count:?}");
    }
    Ok(())
}
