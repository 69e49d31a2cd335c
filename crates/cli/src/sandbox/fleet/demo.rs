//! The demo: a small fleet in four time zones, and scripted changes for one week.
//!
//! The week may start on any day at any hour. Most changes happen on one of the first four whole working days
//! after the start, which always lie within a week. So does a Wednesday, on which an owner reclaims a
//! machine.

use crate::sandbox::fleet::{Change, InitialObject, SandboxFleet, UserAction};
use crate::sandbox::trace::Key;
use five_spot_standins::node_name;
use jiff::civil::{Date, Time, Weekday, time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};

const NEW_YORK: &str = "America/New_York";
const BERLIN: &str = "Europe/Berlin";
const LONDON: &str = "Europe/London";
const TOKYO: &str = "Asia/Tokyo";

/// The machines, their workloads and the scripted changes, from `start` on.
pub fn demo(start: Timestamp) -> SandboxFleet {
    let office = |zone: &str| json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": zone});
    let holiday = working_day(start, TOKYO, 4);
    let mut tokyo = office(TOKYO);
    tokyo["exceptions"] = json!([{"date": holiday.to_string(), "state": "closed", "reason": "holiday"}]);
    let weekend = json!({"timezone": LONDON, "windows": [{"from": "fri 18:30", "to": "mon 06:00"}]});
    let nights = json!({"hoursOfDay": ["20-5"], "timezone": BERLIN, "leadTime": "15m"});

    let mut objects = Vec::new();
    for (number, (key, schedule, further)) in [
        (desk(1), office(NEW_YORK), json!({"killIfCommands": ["java"]})),
        (desk(2), office(NEW_YORK), json!({"priority": 80})),
        // The database must be moved by hand before the drain can finish; an hour leaves time for that.
        (database(), office(NEW_YORK), json!({"gracefulShutdownTimeout": "1h", "nodeDrainTimeout": "1h"})),
        (Key::new("europe", "berlin-render-01"), nights, json!({})),
        (overridden(), office(BERLIN), json!({})),
        (Key::new("europe", "london-ci-01"), weekend, json!({})),
        (Key::new("asia", "tokyo-lab-01"), tokyo, json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        objects.push(machine(&key, number, &schedule, &further));
        objects.push(deployment(&key));
    }
    objects.push(budget());
    let objects = objects.into_iter().map(|value| InitialObject { value, location: None }).collect();
    SandboxFleet { objects, script: script(start) }
}

/// The time for which the owner of a machine uses it.
const JAVA_RUNS: SignedDuration = SignedDuration::from_mins(270);

/// The time within which every machine of the demo joins its cluster.
const JOINED_WITHIN: SignedDuration = SignedDuration::from_mins(15);

fn desk(number: u32) -> Key {
    Key::new("americas", format!("ny-desk-{number:02}"))
}

fn database() -> Key {
    Key::new("americas", "ny-database-01")
}

fn overridden() -> Key {
    Key::new("europe", "berlin-render-02")
}

/// The user actions of the demo week.
fn script(start: Timestamp) -> Vec<UserAction> {
    let set_budget = |minimum: i32| Change::Budget(database(), json!({"spec": {"minAvailable": minimum}}));
    let set_switch = |is_on: bool| Change::ScheduledMachine(desk(2), json!({"spec": {"killSwitch": is_on}}));
    let at = |zone: &str, day: usize, time: Time| instant(zone, working_day(start, zone, day), time);
    let until = at(BERLIN, 2, time(23, 0, 0, 0));
    let forced = json!({"state": "up", "until": until.to_string(), "reason": "the film is late"});
    let late = Change::ScheduledMachine(overridden(), json!({"spec": {"override": forced}}));
    let java_starts = java_start(start);
    let action = |at, sentence: &str, change| UserAction { at, sentence: sentence.to_owned(), change };
    let mut script = vec![
        action(
            at(NEW_YORK, 1, time(12, 0, 0, 0)),
            "a user protects the database on ny-database-01",
            set_budget(1),
        ),
        // The window closes at 18:00, and the budget blocks the drain.
        action(
            at(NEW_YORK, 1, time(18, 30, 0, 0)),
            "a user has moved the database off ny-database-01",
            set_budget(0),
        ),
        action(
            at(BERLIN, 2, time(19, 30, 0, 0)),
            "a user overrides berlin-render-02: up until 23:00 in Berlin",
            late,
        ),
        action(java_starts, "the owner of ny-desk-01 starts java", Change::Program(desk(1), "java")),
        action(
            java_starts + JAVA_RUNS,
            "the owner of ny-desk-01 has closed java and enables the schedule",
            Change::ScheduledMachine(desk(1), json!({"spec": {"schedule": {"enabled": true}}})),
        ),
        action(
            at(NEW_YORK, 3, time(11, 20, 0, 0)),
            "a user turns on the kill switch of ny-desk-02",
            set_switch(true),
        ),
        action(
            at(NEW_YORK, 3, time(14, 5, 0, 0)),
            "a user turns off the kill switch of ny-desk-02",
            set_switch(false),
        ),
    ];
    script.sort_by_key(|action| action.at);
    script
}

/// The time on a Wednesday at which the owner starts the program: in the morning, or as soon as a machine has
/// joined if the run starts later on that day. If that is too late in the day, the time is a week later,
/// which is still within the week of the run.
fn java_start(start: Timestamp) -> Timestamp {
    let today = zone_of(NEW_YORK).to_datetime(start).date();
    let joined = start + JOINED_WITHIN;
    std::iter::successors(Some(today), |day| Some(day_after(*day)))
        .filter(|day| day.weekday() == Weekday::Wednesday)
        .map(|day| (instant(NEW_YORK, day, time(10, 40, 0, 0)), instant(NEW_YORK, day, time(16, 30, 0, 0))))
        .find(|(_, latest)| joined <= *latest)
        .map_or(Timestamp::MAX, |(morning, _)| morning.max(joined))
}

/// The `number`-th whole working day after `start`, counted from 1.
fn working_day(start: Timestamp, zone: &str, number: usize) -> Date {
    let today = zone_of(zone).to_datetime(start).date();
    // The current day counts only if it has just started.
    let first = if instant(zone, today, Time::midnight()) >= start { today } else { day_after(today) };
    std::iter::successors(Some(first), |day| Some(day_after(*day)))
        .filter(|day| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday))
        .nth(number - 1)
        .unwrap_or(first)
}

fn day_after(day: Date) -> Date {
    day.saturating_add(1.day())
}

fn instant(zone: &str, day: Date, time: Time) -> Timestamp {
    let ambiguous = zone_of(zone).to_ambiguous_timestamp(day.to_datetime(time));
    ambiguous.compatible().unwrap_or(Timestamp::MAX)
}

fn zone_of(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap_or(TimeZone::UTC)
}

fn machine(key: &Key, number: usize, schedule: &Value, further: &Value) -> Value {
    let mut machine = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "schedule": schedule, "clusterName": key.namespace,
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.36.4+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": format!("192.0.2.{}", 10 + number), "port": 22, "user": "root"},
            },
        },
    });
    for (field, value) in further.as_object().into_iter().flatten() {
        machine["spec"][field] = value.clone();
    }
    machine
}

/// A workload for each machine while it is lent, so that there are pods to drain.
fn deployment(key: &Key) -> Value {
    let node = node_name(&key.namespace, &five_spot_api::names::infrastructure(&key.name));
    // Most workloads have two replicas; the database has one.
    let replicas = if *key == database() { 1 } else { 2 };
    let labels = json!({"app": key.name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "containers": [{"name": "main", "image": "example.org/app:1"}],
                },
            },
        },
    })
}

/// A budget that allows every eviction until a user changes it.
fn budget() -> Value {
    let Key { namespace, name } = database();
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": name}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validity::Checked;

    #[test]
    fn every_start_has_all_changes_within_a_week() {
        let first: Timestamp = "2026-10-19T00:00:00Z".parse().expect("an instant");
        for hour in 0..24 * 21 {
            let start = first + SignedDuration::from_hours(hour);
            let script = script(start);
            assert!(script.is_sorted_by_key(|action| action.at));
            assert!(script.iter().all(|action| action.at >= start), "{start}: {script:?}");
            let last = script.last().expect("a deed").at;
            assert!(last < start + SignedDuration::from_hours(7 * 24), "{start}: {last}");
            let java = zone_of(NEW_YORK).to_datetime(java_start(start));
            assert_eq!(java.weekday(), Weekday::Wednesday, "{start}");
            assert!((10..17).contains(&java.hour()), "{start}: the window is closed at {java}");
            let holiday = instant(TOKYO, working_day(start, TOKYO, 4), time(18, 0, 0, 0));
            assert!(holiday < start + SignedDuration::from_hours(7 * 24), "{start}: {holiday}");
        }
    }

    #[test]
    fn every_machine_is_valid() {
        let fleet = demo("2026-11-09T00:00:00Z".parse().expect("an instant"));
        let machines: Vec<_> =
            fleet.objects.iter().filter(|one| one.value["kind"] == "ScheduledMachine").collect();
        assert_eq!(machines.len(), 7);
        for machine in machines {
            Checked::new(machine.value.clone()).expect("a valid machine");
        }
    }
}
