//! The events of the recorded run.

use crate::recorded_run::record;
use crate::seed::{BRAKE, EVENTS};
use five_spot_api::event::EventReason;
use serde_json::Value;
use std::collections::BTreeMap;

fn of<'a>(machine: &str, reason: &str) -> Vec<&'a Value> {
    let is = |event: &&Value| event["regarding"]["name"] == machine && event["reason"] == reason;
    record().events.iter().filter(is).collect()
}

#[test]
fn every_documented_reason_is_published_with_its_type() {
    let mut published: BTreeMap<&str, &str> = BTreeMap::new();
    for event in &record().events {
        published
            .insert(event["reason"].as_str().expect("a reason"), event["type"].as_str().expect("a type"));
        assert_eq!(event["reportingController"], "5spot-controller");
        assert_eq!(event["regarding"]["kind"], "ScheduledMachine");
        assert_eq!(event["metadata"]["namespace"], "shop");
    }
    let in_run = EVENTS.iter().filter(|(_, reason)| *reason != BRAKE.1);
    let documented: BTreeMap<&str, &str> = in_run.map(|(kind, reason)| (*reason, *kind)).collect();
    assert_eq!(published, documented);
    assert_eq!(EventReason::ALL.len(), EVENTS.len());
}

#[test]
fn what_happens_once_is_announced_once() {
    for (machine, reason, times) in [
        ("switch", "KillSwitchActivated", 1),
        ("taken", "EmergencyReclaim", 3),
        ("taken", "EmergencyReclaimDisabledSchedule", 3),
        ("taken", "RapidReReclaim", 1),
        ("stuck", "FinalizerCleanupTimedOut", 1),
        ("refused", "ReconcileFailed", 1),
        ("refused", "Recovered", 1),
        ("shift", "ReconcileFailed", 1),
    ] {
        assert_eq!(of(machine, reason).len(), times, "{machine} {reason}");
    }
}

#[test]
fn a_fault_that_stays_is_counted_in_its_event() {
    // Refused from nine to half past, with retries after 0, 30, 90, 210, 450, 750, 1050, 1350 and 1650 s.
    for (machine, at_least) in [("refused", 6), ("shift", 3)] {
        let event = of(machine, "ReconcileFailed")[0];
        let count = event["series"]["count"].as_i64().unwrap_or_default();
        assert!(count >= at_least, "{machine}: {event}");
        assert!(event["series"]["lastObservedTime"].as_str() > event["eventTime"].as_str(), "{event}");
    }
}
