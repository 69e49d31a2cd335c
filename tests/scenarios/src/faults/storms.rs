//! Many requests fail, for ten minutes.

use super::{Baseline, Case, Judge, moments};
use crate::environment::Write;
use crate::in_memory::{Disturbance, Run, Storm};
use anyhow::{Context as _, ensure};
use five_spot_apiserver::faults::InjectedFault;
use http::StatusCode;
use jiff::SignedDuration;
use std::time::Duration;

/// The length of a storm.
const STORM: Duration = Duration::from_mins(10);

/// The time without a write after which a scenario counts as settled: it may have ended while the storm
/// continues.
const SETTLED: Duration = Duration::from_mins(11);

/// The failing requests per thousand.
const RATES: [u64; 4] = [10, 100, 500, 1000];

/// The time by which a storm begins before the controller has something to do.
const AHEAD_MILLIS: i64 = 1_000;

/// The time after a storm within which the controller has to be active again.
const AT_WORK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// After this time a write is not related to the storm.
const LEFT_ALONE: SignedDuration = SignedDuration::from_mins(10);

/// The most writes in a second.
const MOST_WRITES_A_SECOND: usize = 20;

/// Scenarios whose time passes during a storm, that measure time or count writes, or that wait for a cause which is
/// reported only while nothing else is wrong.
const TIMED: [&str; 18] = [
    "cluster_appears_later",
    "cordon_before",
    "deleted_while_nobody_was_there",
    "deletion_is_bounded",
    "down_when_the_window_closes",
    // A waiter whose requests fail for a minute loses its turn.
    "higher_priority_goes_first",
    "killed_in_mid_drain",
    "lead_time",
    // It measures seconds during an outage of its own.
    "one_cluster_hangs",
    "override_up",
    "provider_fails_and_recovers",
    "restarted_while_idle",
    "rules_and_labels_of_cluster_api",
    "two_hundred_pods",
    "two_open_at_once",
    "unreachable_node_is_not_waited_for",
    "window_closes_and_drains",
    "window_opens",
];

/// Every fault at every rate, from each moment at which the controller has something to do.
pub(super) fn cases(baseline: &Baseline, seed: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for moment in moments(&baseline.run) {
        let after = Duration::from_millis(u64::try_from(moment - AHEAD_MILLIS).unwrap_or(0));
        for (name, fault) in faults() {
            for per_mille in RATES {
                let storm = Storm { per_mille, fault: fault.clone(), after, lasting: STORM };
                let disturbance = Disturbance {
                    storm: Some(storm),
                    seed,
                    settles_after: Some(SETTLED),
                    may_fail: TIMED.contains(&baseline.scenario.name),
                    ..Disturbance::default()
                };
                let name = format!("{name}-{per_mille}-from-{}", after.as_millis());
                cases.push(Case { name, disturbance, judge: Judge::Storm });
            }
        }
    }
    cases
}

/// The faults of a server or network.
fn faults() -> Vec<(&'static str, InjectedFault)> {
    vec![
        ("409", InjectedFault::Refuse(StatusCode::CONFLICT, None)),
        ("429", InjectedFault::Refuse(StatusCode::TOO_MANY_REQUESTS, Some(1))),
        ("500", InjectedFault::Refuse(StatusCode::INTERNAL_SERVER_ERROR, None)),
        ("503", InjectedFault::Refuse(StatusCode::SERVICE_UNAVAILABLE, None)),
        ("504", InjectedFault::Refuse(StatusCode::GATEWAY_TIMEOUT, None)),
        ("misrouted", InjectedFault::Misroute),
        ("reset", InjectedFault::DropBefore),
        ("lost-reply", InjectedFault::DropAfter),
        ("timeout", InjectedFault::Hang),
    ]
}

/// After a storm the controller is at work again within a minute, and at no time does it send more than a few writes
/// a second, or not many more than without a storm.
pub(super) fn judge(baseline: &Baseline, disturbance: &Disturbance, run: &Run) -> anyhow::Result<()> {
    let (busiest, before) = (busiest_second(&run.writes), busiest_second(&baseline.run.writes).len());
    // Objects that act at the same instant also retry at once what got no response.
    let most = MOST_WRITES_A_SECOND.max(before + before / 2);
    let texts: Vec<String> = busiest.iter().map(ToString::to_string).collect();
    ensure!(
        texts.len() <= most,
        "{} writes in a second, and {before} without a storm:\n{}",
        texts.len(),
        texts.join("\n")
    );
    let storm = disturbance.storm.as_ref().context("there was a storm")?;
    let over = run.began.saturating_add(SignedDuration::try_from(storm.after + storm.lasting)?)?;
    let was_left_in_trouble =
        run.asked.iter().rfind(|(time, _)| *time < over).is_some_and(|(_, failed)| *failed);
    let next = run.writes.iter().map(|write| write.time).find(|time| *time >= over);
    if let Some(waited) = next.map(|next| next.duration_since(over)).filter(|_| was_left_in_trouble) {
        // Later writes have another cause: a boundary, or the next step of the scenario.
        ensure!(
            waited <= AT_WORK_AGAIN || waited > LEFT_ALONE,
            "the first write came {waited} after the storm"
        );
    }
    Ok(())
}

/// The writes of the second that has the most.
fn busiest_second(writes: &[Write]) -> Vec<&Write> {
    let second = SignedDuration::from_secs(1);
    let from = |first: &Write| -> Vec<&Write> {
        let is_near = |write: &&Write| write.time.duration_since(first.time) < second;
        writes.iter().filter(|write| write.time >= first.time).filter(is_near).collect()
    };
    writes.iter().map(from).max_by_key(Vec::len).unwrap_or_default()
}
