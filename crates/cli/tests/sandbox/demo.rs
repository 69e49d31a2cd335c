//! The demo's week: machines are lent exactly when they are wanted, and the documented events happen.

use crate::program::{Answer, about, sandbox, second};
use serde_json::Value;
use std::sync::LazyLock;

const WEEK: &str = "--once --start 2026-11-09T00:00:00Z -o json";

/// Once for all tests: it takes its time.
static DEMO: LazyLock<Answer> = LazyLock::new(|| sandbox(WEEK));

fn transitions(name: &str) -> Vec<(String, String)> {
    let lines = DEMO.lines();
    let transition = |line: &Value| (second(line), line["to"].as_str().unwrap_or("gone").to_owned());
    about(&lines, "transition", name).into_iter().map(transition).collect()
}

/// The times at which an event was published.
fn events(name: &str, reason: &str) -> Vec<String> {
    let lines = DEMO.lines();
    about(&lines, "event", name).into_iter().filter(|line| line["reason"] == reason).map(second).collect()
}

#[test]
fn every_machine_is_up_exactly_when_wanted() {
    assert_eq!((DEMO.code, DEMO.stderr.as_str()), (0, ""), "{DEMO:?}");
    let lines = DEMO.lines();
    let summary = lines.last().expect("a summary");
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["violations"], serde_json::json!([]));
    assert_eq!(summary["machines"].as_array().map(Vec::len), Some(7));
}

#[test]
fn the_same_start_and_seed_give_the_same_week_byte_for_byte() {
    assert!(sandbox(WEEK).stdout == DEMO.stdout);
}

#[test]
fn another_seed_gives_other_machines() {
    let day =
        |seed: &str| sandbox(&format!("--once --start 2026-11-09T00:00:00Z --for 12h -o json --seed {seed}"));
    let (one, other) = (day("1"), day("2"));
    assert_eq!((one.code, other.code), (0, 0));
    assert!(one.stdout != other.stdout);
}

#[test]
fn every_line_has_its_fields() {
    for line in DEMO.lines() {
        let fields: &[&str] = match line["type"].as_str().expect("a type") {
            "transition" => &["time", "namespace", "name", "from", "to"],
            "event" => &["time", "namespace", "name", "reason", "eventType", "note"],
            "write" => &["time", "verb", "resource", "namespace", "name", "status"],
            "summary" => &["machines", "reclaims", "violations"],
            other => panic!("{other}"),
        };
        for field in fields {
            assert!(line.get(field).is_some(), "{field} of {line}");
        }
    }
    let mut times: Vec<String> =
        DEMO.lines().iter().filter(|line| line["time"].is_string()).map(second).collect();
    assert!(times.is_sorted());
    times.dedup();
    assert!(times.len() > 200, "{}", times.len());
}

#[test]
fn the_holiday_is_closed() {
    let active: Vec<String> = transitions("tokyo-lab-01")
        .into_iter()
        .filter(|(_, to)| to == "Active")
        .map(|(time, _)| time)
        .collect();
    let days: Vec<&str> = active.iter().map(|time| &time[..10]).collect();
    assert_eq!(days, ["2026-11-09", "2026-11-10", "2026-11-11", "2026-11-12"], "the 13th is a holiday");
}

#[test]
fn a_budget_blocks_the_drain_until_it_is_changed() {
    let lines = DEMO.lines();
    let refused: Vec<String> = lines
        .iter()
        .filter(|line| line["subresource"] == "eviction" && line["status"] == 429)
        .map(second)
        .collect();
    let (first, last) = (refused.first().expect("refused"), refused.last().expect("refused"));
    assert!(
        first.starts_with("2026-11-09T23:00:0") && last.starts_with("2026-11-09T23:29:"),
        "{first} {last}"
    );
    let drained = &events("ny-database-01", "NodeDrained")[0];
    assert!(drained.starts_with("2026-11-09T23:30:"), "{drained}");
    assert_eq!(events("ny-database-01", "ReconcileFailed"), Vec::<String>::new());
}

#[test]
fn a_kill_switch_removes_the_machine_at_once() {
    assert_eq!(events("ny-desk-02", "KillSwitchActivated"), ["2026-11-11T16:20:00Z"]);
    let day: Vec<(String, String)> =
        transitions("ny-desk-02").into_iter().filter(|(time, _)| time.starts_with("2026-11-11T1")).collect();
    let phases: Vec<&str> = day.iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(phases, ["Pending", "Active", "ShuttingDown", "Terminated", "Pending", "Active"], "{day:?}");
    assert_eq!((day[2].0.as_str(), day[4].0.as_str()), ("2026-11-11T16:20:00Z", "2026-11-11T19:05:00Z"));
    let lines = DEMO.lines();
    let evictions = lines
        .iter()
        .filter(|line| line["subresource"] == "eviction" && second(line).starts_with("2026-11-11T16:2"));
    assert_eq!(evictions.count(), 0, "nothing is drained");
}

#[test]
fn the_owner_gets_the_machine_back_within_seconds() {
    assert_eq!(events("ny-desk-01", "EmergencyReclaim"), ["2026-11-11T15:40:00Z"]);
    let window = |(time, _): &(String, String)| ("2026-11-11T14".."2026-11-11T23").contains(&time.as_str());
    let day: Vec<(String, String)> = transitions("ny-desk-01").into_iter().filter(window).collect();
    let phases: Vec<&str> = day.iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(phases, ["Pending", "Active", "EmergencyRemove", "Disabled", "Pending", "Active"], "{day:?}");
    assert_eq!((day[2].0.as_str(), day[4].0.as_str()), ("2026-11-11T15:40:00Z", "2026-11-11T20:10:00Z"));
    let lines = DEMO.lines();
    let reclaims = lines.last().expect("a summary")["reclaims"].clone();
    let reclaim = &reclaims[0];
    assert_eq!(reclaims.as_array().map(Vec::len), Some(1), "{reclaims}");
    assert_eq!((&reclaim["name"], &reclaim["reason"]), (&"ny-desk-01".into(), &"process-match: java".into()));
    let mut last = 0.0;
    for stage in ["annotated", "pods_gone", "machine_deleted", "node_gone"] {
        let seconds = reclaim["seconds"][stage].as_f64().unwrap_or_else(|| panic!("{stage}: {reclaim}"));
        assert!((last..60.0).contains(&seconds), "{stage}: {reclaim}");
        last = seconds;
    }
}

#[test]
fn the_override_keeps_a_machine_up_for_an_evening() {
    let evening = |reason: &str| -> Vec<String> {
        events("berlin-render-02", reason)
            .into_iter()
            .filter(|time| time.starts_with("2026-11-11T"))
            .collect()
    };
    assert_eq!(evening("ScheduleActive"), ["2026-11-11T08:00:00Z", "2026-11-11T18:30:00Z"]);
    assert_eq!(evening("ScheduleInactive"), ["2026-11-11T17:00:00Z", "2026-11-11T22:00:00Z"]);
}

#[test]
fn a_weekend_is_one_window() {
    assert_eq!(events("london-ci-01", "ScheduleActive"), ["2026-11-09T00:00:00Z", "2026-11-13T18:30:00Z"]);
    assert_eq!(events("london-ci-01", "ScheduleInactive"), ["2026-11-09T06:00:00Z"]);
}

#[test]
fn text_and_picture_show_the_same_day() {
    let day = "--once --start 2026-11-09T00:00:00Z --for 24h";
    let text = sandbox(day);
    assert_eq!(text.code, 0, "{text:?}");
    let svg = sandbox(&format!("{day} -o svg"));
    assert_eq!(svg.code, 0, "{svg:?}");
    assert!(svg.stdout.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert_eq!(svg.stdout.matches("<svg").count(), svg.stdout.matches("</svg>").count());
    for name in ["ny-desk-01", "ny-database-01", "tokyo-lab-01", "berlin-render-02", "london-ci-01"] {
        assert!(text.stdout.contains(name) && svg.stdout.contains(name), "{name}");
    }
    assert!(text.stdout.contains("Every machine was lent exactly when it was wanted."), "{}", text.stdout);
    let wednesday = sandbox("--once --start 2026-11-09T00:00:00Z --for 3d");
    assert!(
        wednesday.stdout.contains("americas/ny-desk-01: reclaimed Wed 11 Nov 2026 15:40:00 UTC"),
        "{wednesday:?}"
    );
    assert!(wednesday.stdout.contains('!'), "the chart shows it: {wednesday:?}");
    assert!(!text.stdout.contains('\u{1b}'), "no colours without a terminal");
}
