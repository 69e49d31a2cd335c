//! `preview` and `sandbox --once` agree, to the second, also where clocks are moved: what was foreseen is what the
//! controller does.

use crate::program::{about, five_spot, sandbox, second};
use serde_json::Value;

/// From when, for how long, and how often clocks are moved meanwhile in the zones of `examples/fleet.yaml`.
const WEEKS: [(&str, u32); 3] = [
    // Berlin goes back on the 25th of October, New York on the 1st of November.
    ("2026-10-24T00:00:00Z", 9),
    // Both go forward: New York on the 8th of March, Berlin on the 29th.
    ("2026-03-27T00:00:00Z", 4),
    // Lord Howe goes back by half an hour on the 5th of April, in the middle of a window.
    ("2026-04-03T00:00:00Z", 4),
];

#[test]
fn windows_match_the_preview() {
    let mut compared = 0;
    for (start, days) in WEEKS {
        let files = "-f examples/fleet.yaml -f examples/weekend-window.yaml";
        let foreseen = five_spot("", &format!("preview {files} --from {start} --days {days} -o json"));
        let foreseen: Value = serde_json::from_str(&foreseen.stdout).expect("JSON");
        let output = sandbox(&format!("--once {files} --start {start} --for {days}d -o json"));
        assert_eq!(output.code, 0, "{start}: {}", output.stdout.lines().last().unwrap_or_default());
        let lines = output.lines();
        for machine in foreseen.as_array().expect("machines") {
            compared += compare(machine, &lines);
        }
    }
    assert!(compared > 60, "{compared} boundaries");
}

fn compare(machine: &Value, lines: &[Value]) -> usize {
    let name = machine["name"].as_str().expect("a name");
    let windows = machine["windows"].as_array().expect("windows");
    let times = |end: &str, beyond: &Value| -> Vec<String> {
        let times = windows.iter().map(|window| &window[end]).filter(|time| *time != beyond);
        times.map(|time| time.as_str().expect("a time").to_owned()).collect()
    };
    // A window that has begun before begins for the sandbox when it begins itself.
    let starts: Vec<String> = times("start", &Value::Null);
    let ends = times("end", &machine["to"]);

    let writes = about(lines, "write", &format!("{name}-bootstrap"));
    let created: Vec<String> = writes.into_iter().filter(|line| line["status"] == 201).map(second).collect();
    assert_eq!(created, starts, "{name}: the first object of each window");
    let events = about(lines, "event", name).into_iter();
    let closed: Vec<String> =
        events.filter(|line| line["reason"] == "ScheduleInactive").map(second).collect();
    assert_eq!(closed, ends, "{name}: ScheduleInactive at the end of each window");
    starts.len() + ends.len()
}
