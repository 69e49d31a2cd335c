//! Watches that fail at one of their events.

use super::{Baseline, Case, Judge};
use crate::in_memory::{Disturbance, Run};
use anyhow::ensure;
use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger, WatchFault};
use std::collections::BTreeMap;
use std::time::Duration;

/// The delay of a late event.
const LATE: Duration = Duration::from_secs(30);

/// The time a scenario waits when an event was lost, and the time without a write: a watch is restarted within
/// the hour.
const LOST: (Duration, Duration) = (Duration::from_hours(4), Duration::from_mins(70));

/// The same for a watch that hangs: it is restarted after three minutes.
const HUNG: (Duration, Duration) = (Duration::from_mins(30), Duration::from_mins(5));

/// Scenarios that measure time, or whose time has passed when a lost event is recovered after an hour.
const TIMED: [&str; 11] = [
    "cordon_before",
    "deletion_is_bounded",
    "lead_time",
    "override_down",
    "override_up",
    "provider_objects_lose_their_owner",
    "a_cordon_of_another_client_stays",
    "two_hundred_pods",
    "window_closes_and_drains",
    "window_opens",
    "window_reopens_during_shutdown",
];

/// A scenario that measures seconds during its own outage: a late event is too late for it.
const MEASURES_SECONDS: [&str; 1] = ["one_cluster_hangs"];

/// A scenario in which someone changes a Node forty times a second: the hour until a lost event is noticed would take a hundred thousand
/// writes.
const WRITES_WITHOUT_END: [&str; 1] = ["taints_while_others_change_theirs"];

/// Every fault at every event of every watch that came while the scenario was run, and at the one that would have come
/// next.
pub(super) fn cases(baseline: &Baseline) -> Vec<Case> {
    let finished = baseline.finished();
    let loses_events = !WRITES_WITHOUT_END.contains(&baseline.scenario.name);
    let mut cases = Vec::new();
    for (number, watch) in baseline.run.watches.iter().enumerate() {
        let events = watch.events.iter().filter(|time| **time <= finished).count();
        if events == 0 {
            continue;
        }
        let plural = watch.path.rsplit('/').next().unwrap_or_default();
        for event in 0..=events as u64 {
            let is_tried = |fault| loses_events || !matches!(fault, WatchFault::LoseEvent(_));
            let tried = faults(event).into_iter().filter(|(_, fault)| is_tried(*fault));
            cases.extend(tried.map(|(name, fault)| {
                let name = format!("{number}-{plural}-{event}-{name}");
                case(baseline, name, number as u64, fault)
            }));
        }
    }
    cases
}

const fn makes_late(fault: WatchFault) -> bool {
    match fault {
        WatchFault::LoseEvent(_) | WatchFault::DelayEvent(..) | WatchFault::HangBefore(_) => true,
        WatchFault::CloseBefore(_) | WatchFault::GoneBefore(_) => false,
    }
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

fn case(baseline: &Baseline, name: String, watch: u64, fault: WatchFault) -> Case {
    let trigger = Trigger::Nth(watch);
    let rule = FaultRule {
        kind: RequestKind::Watch,
        path: String::new(),
        trigger,
        fault: InjectedFault::Watch(fault),
    };
    let pace = match fault {
        WatchFault::LoseEvent(_) => Some(LOST),
        WatchFault::HangBefore(_) => Some(HUNG),
        WatchFault::DelayEvent(..) | WatchFault::CloseBefore(_) | WatchFault::GoneBefore(_) => None,
    };
    let name_of = &baseline.scenario.name;
    let is_too_late = pace.is_some() && TIMED.contains(name_of);
    let disturbance = Disturbance {
        wait_limit: pace.map(|(wait_limit, _)| wait_limit),
        settles_after: pace.map(|(_, settled)| settled),
        may_fail: is_too_late || (makes_late(fault) && MEASURES_SECONDS.contains(name_of)),
        ..Disturbance::rule(rule)
    };
    Case { name, disturbance, judge: Judge::OneList }
}

/// A scenario in which a kind is gone for good, and is requested for as long as the run waits; and one with its own
/// outage, in which a watch may restart with a list, depending on the time.
const LISTS_OF_ITS_OWN: [&str; 2] = ["definition_deleted", "management_is_silent_in_mid_drain"];

/// A fault costs at most one list. If the scenario could not run to its end, the controller was restarted and listed
/// everything.
pub(super) fn judge(baseline: &Baseline, run: &Run) -> anyhow::Result<()> {
    if run.result.is_none() || LISTS_OF_ITS_OWN.contains(&baseline.scenario.name) {
        return Ok(());
    }
    let mut more: BTreeMap<&str, usize> = BTreeMap::new();
    for list in &run.lists {
        *more.entry(list).or_default() += 1;
    }
    for (list, times) in &mut more {
        // A watch that only this run has opened began with its own list.
        let expected = baseline.run.lists.iter().filter(|other| other == list).count().max(1);
        *times = times.saturating_sub(expected);
    }
    more.retain(|_, times| *times > 0);
    ensure!(more.values().sum::<usize>() <= 1, "more than one list more: {more:?}");
    Ok(())
}
