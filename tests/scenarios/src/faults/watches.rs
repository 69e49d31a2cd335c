//! Watches that go wrong at one of their events.

use super::{Case, Fair, Judge};
use crate::embedded::{Disturbance, Run};
use anyhow::ensure;
use five_spot_sandbox::faults::{Fault, RequestKind, Rule, Trigger, WatchFault};
use std::time::Duration;

/// How late a late event comes.
const LATE: Duration = Duration::from_secs(30);

/// How long a scenario waits when an event was lost: a watch begins afresh within the hour.
const PATIENCE: Duration = Duration::from_mins(90);

/// Scenarios whose time has passed when an event is made good for after an hour.
const TIMED: [&str; 0] = [];

/// Every fault at every event of every watch that came while the scenario was played, and at the one that would have come
/// next.
pub(super) fn cases(fair: &Fair) -> Vec<Case> {
    let played = fair.played();
    let mut cases = Vec::new();
    for (number, watch) in fair.run.watches.iter().enumerate() {
        let events = watch.events.iter().filter(|time| **time <= played).count();
        if events == 0 {
            continue;
        }
        let plural = watch.path.rsplit('/').next().unwrap_or_default();
        for event in 0..=events as u64 {
            cases.extend(faults(event).map(|(name, fault)| {
                let name = format!("{number}-{plural}-{event}-{name}");
                case(fair, name, number as u64, fault)
            }));
        }
    }
    cases
}

fn faults(event: u64) -> [(&'static str, WatchFault); 5] {
    [
        ("lost", WatchFault::LoseEvent(event)),
        ("late", WatchFault::DelayEvent(event, LATE)),
        ("closed", WatchFault::CloseBefore(event)),
        ("hung", WatchFault::HangBefore(event)),
        ("gone", WatchFault::GoneBefore(event)),
    ]
}

fn case(fair: &Fair, name: String, watch: u64, fault: WatchFault) -> Case {
    let trigger = Trigger::Nth(watch);
    let rule = Rule { kind: RequestKind::Watch, path: String::new(), trigger, fault: Fault::Watch(fault) };
    let is_lost = matches!(fault, WatchFault::LoseEvent(_));
    let disturbance = Disturbance {
        patience: is_lost.then_some(PATIENCE),
        may_fail: is_lost && TIMED.contains(&fair.scenario.name),
        ..Disturbance::rule(rule)
    };
    Case { name, disturbance, judge: Judge::OneList }
}

/// A fault costs at most one list.
pub(super) fn judge(fair: &Fair, run: &Run) -> anyhow::Result<()> {
    let (before, now) = (fair.run.lists, run.lists);
    ensure!(now <= before + 1, "{now} lists instead of {before} and one");
    Ok(())
}
