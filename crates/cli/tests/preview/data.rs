//! JSON and YAML: the shape is a promise, and every instant is exact.

use crate::machine::machine;
use crate::program::{directory, preview, preview_of};
use serde_json::{Value, json};

/// The only object of a preview.
fn only(fields: &str, line: &str) -> Value {
    let mut objects = preview_of(machine("m", fields), &format!("-o json {line}")).json();
    assert_eq!(objects.as_array().map(Vec::len), Some(1), "{objects}");
    objects[0].take()
}

/// `start end reason` of each window.
fn windows(object: &Value) -> Vec<String> {
    let word = |window: &Value, key: &str| window[key].as_str().expect("a string").to_owned();
    object["windows"]
        .as_array()
        .expect("windows")
        .iter()
        .map(|window| ["start", "end", "reason"].map(|key| word(window, key)).join(" "))
        .collect()
}

fn check(fields: &str, line: &str, expected: &[&str]) {
    let object = only(fields, line);
    assert_eq!(windows(&object), expected, "{fields}");
}

#[test]
fn the_output_is_exactly_as_documented() {
    let answer =
        preview("-f examples/office-hours.yaml -o json --from 2026-10-30T00:00:00-04:00 --days 4").text();
    assert_eq!(
        answer,
        r#"[
  {
    "name": "trading-desk-07",
    "namespace": "research",
    "timezone": "America/New_York",
    "from": "2026-10-30T04:00:00Z",
    "to": "2026-11-03T04:00:00Z",
    "windows": [
      {
        "start": "2026-10-30T13:00:00Z",
        "end": "2026-10-30T22:00:00Z",
        "reason": "schedule"
      },
      {
        "start": "2026-11-02T14:00:00Z",
        "end": "2026-11-02T23:00:00Z",
        "reason": "schedule"
      }
    ]
  }
]
"#
    );
}

#[test]
fn the_output_is_an_array_for_any_number_of_objects() {
    let config_map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}";
    let answer = preview_of(config_map, "-o json");
    assert!(answer.stderr.contains("note: standard input: document 1 (c): skipped"), "{answer:?}");
    assert_eq!(answer.json(), json!([]));
    let three = ["a", "b", "c"].map(|name| machine(name, "hoursOfDay: ['9']")).concat();
    assert_eq!(preview_of(three, "-o json").json().as_array().map(Vec::len), Some(3));
}

#[test]
fn yaml_holds_the_same_data() {
    let line = "-f examples/holidays.yaml -f examples/fleet.yaml --from 2026-12-20T00:00:00Z --days 20";
    let json = preview(&format!("{line} -o json")).json();
    let yaml: Value = serde_saphyr::from_str(&preview(&format!("{line} -o yaml")).text()).expect("YAML");
    assert_eq!(yaml, json);
}

#[test]
fn instants_in_yaml_are_strings_for_every_parser() {
    let yaml = preview("-f examples/office-hours.yaml -o yaml --from 2026-11-02T00:00:00Z --days 1").text();
    assert!(yaml.contains("start: \"2026-11-02T14:00:00Z\""), "{yaml}");
}

#[test]
fn objects_keep_the_order_of_files_documents_and_items() {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [ONE, TWO]}"#;
    let in_json = |name: &str| {
        let object: Value = serde_saphyr::from_str(&machine(name, "hoursOfDay: ['9']")).expect("YAML");
        object.to_string()
    };
    let files = directory(&[
        ("one.yaml", &["z", "a"].map(|name| machine(name, "hoursOfDay: ['9']")).concat()),
        ("two.json", &list.replace("ONE", &in_json("x")).replace("TWO", &in_json("b"))),
    ]);
    let path = |name: &str| files.path().join(name).display().to_string();
    let objects = preview(&format!("-f {} -f {} -o json", path("two.json"), path("one.yaml"))).json();
    let names: Vec<&str> =
        objects.as_array().expect("array").iter().filter_map(|o| o["name"].as_str()).collect();
    assert_eq!(names, ["x", "b", "z", "a"]);
}

#[test]
fn the_output_of_kubectl_can_be_read() {
    let object: Value = serde_saphyr::from_str(&machine("m", "hoursOfDay: ['9']")).expect("YAML");
    let mut stored = object;
    stored["metadata"] = json!({
        "name": "m", "namespace": "lab", "uid": "0b1", "resourceVersion": "7", "generation": 2,
        "creationTimestamp": "2026-11-01T00:00:00Z", "annotations": {"a": "b"},
        "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
    });
    stored["status"] = json!({"phase": "Active", "somethingNew": 1});
    let list =
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [stored]});
    assert_eq!(preview_of(list.to_string(), "-o json").json()[0]["namespace"], "lab");
}

#[test]
fn an_object_that_names_no_namespace_is_in_default() {
    assert_eq!(only("hoursOfDay: ['9']", "")["namespace"], "default");
    assert_eq!(only("hoursOfDay: ['9']", "")["timezone"], "UTC");
    let empty = machine("m", "hoursOfDay: ['9']").replace("  name: m\n", "  name: m\n  namespace: ''\n");
    assert_eq!(preview_of(empty, "-o json").json()[0]["namespace"], "default");
}

#[test]
fn without_flags_the_range_is_two_weeks_from_now() {
    let object = only("hoursOfDay: ['9']", "");
    let instant = |of: &Value, key: &str| {
        of[key].as_str().expect("a string").parse::<jiff::Timestamp>().expect("RFC 3339")
    };
    let length = |of: &Value, [from, to]: [&str; 2]| instant(of, to).duration_since(instant(of, from));
    assert_eq!(length(&object, ["from", "to"]), jiff::SignedDuration::from_hours(14 * 24));
    let since = jiff::Timestamp::now().duration_since(instant(&object, "from"));
    assert!(since.abs() < jiff::SignedDuration::from_mins(5));
    // An hour of each day. While that hour lasts, its window is partly at the beginning and partly at the end.
    let windows = object["windows"].as_array().expect("windows").iter();
    let open: jiff::SignedDuration = windows.map(|window| length(window, ["start", "end"])).sum();
    assert_eq!(open, jiff::SignedDuration::from_hours(14));
}

#[test]
fn windows_are_clipped_to_the_range() {
    check(
        "hoursOfDay: [9-17]",
        "--from 2026-11-02T12:00:00Z --to 2026-11-03T10:30:15Z",
        &[
            "2026-11-02T12:00:00Z 2026-11-02T18:00:00Z schedule",
            "2026-11-03T09:00:00Z 2026-11-03T10:30:15Z schedule",
        ],
    );
    check("hoursOfDay: [9-17]", "--from 2026-11-02T18:00:00Z --to 2026-11-03T09:00:00Z", &[]);
}

#[test]
fn windows_that_touch_are_one_with_all_their_reasons() {
    check(
        "hoursOfDay: [9-17]
         windows: [{from: 'mon 18:00', to: 'mon 20:15'}]
         exceptions: [{date: 2026-11-02, state: open, hours: ['8']}]
         leadTime: 10m",
        "--from 2026-11-02T00:00:00Z --days 1",
        &["2026-11-02T07:50:00Z 2026-11-02T20:15:00Z exception+leadTime+schedule+window"],
    );
}

#[test]
fn the_override_wins_until_it_expires() {
    let range = "--from 2026-11-02T00:00:00Z --days 1";
    check(
        "hoursOfDay: [9-17]
         spec.override: {state: up, until: 2026-11-02T03:00:00+01:00}",
        range,
        &[
            "2026-11-02T00:00:00Z 2026-11-02T02:00:00Z override",
            "2026-11-02T09:00:00Z 2026-11-02T18:00:00Z schedule",
        ],
    );
    check(
        "hoursOfDay: [9-17]
         spec.override: {state: down, until: 2026-11-02T12:00:00Z}",
        range,
        &["2026-11-02T12:00:00Z 2026-11-02T18:00:00Z schedule"],
    );
    check(
        "hoursOfDay: [9-17]
         spec.override: {state: up, until: 2026-11-02T12:00:00Z}",
        range,
        &["2026-11-02T00:00:00Z 2026-11-02T18:00:00Z override+schedule"],
    );
}

#[test]
fn a_note_explains_missing_windows() {
    let range = "--from 2026-11-02T00:00:00Z --days 1";
    let note = |fields: &str| {
        let object = only(fields, range);
        (windows(&object), object["note"].as_str().map(str::to_owned))
    };
    let disabled = "disabled (spec.schedule.enabled: false): no machine is wanted";
    let killed = "the kill switch is on (spec.killSwitch: true): no machine is wanted";
    let up = "spec.override: {state: up, until: 2026-11-02T03:00:00Z}";
    let night = "2026-11-02T00:00:00Z 2026-11-02T03:00:00Z override".to_owned();

    assert_eq!(note("hoursOfDay: ['9']\nexceptions: [{date: 2026-11-02, state: closed}]"), (vec![], None));
    assert_eq!(note("hoursOfDay: ['9']\nenabled: false"), (vec![], Some(disabled.into())));
    assert_eq!(note("hoursOfDay: ['9']\nspec.killSwitch: true"), (vec![], Some(killed.into())));
    assert_eq!(
        note(&format!("hoursOfDay: ['9']\nenabled: false\nspec.killSwitch: true\n{up}")),
        (vec![], Some(killed.into()))
    );
    assert_eq!(
        note(&format!("hoursOfDay: ['9']\nenabled: false\n{up}")),
        (vec![night], Some(format!("{disabled} but for the override")))
    );
}

#[test]
fn windows_follow_daylight_saving() {
    // Nights across the change in New York: one hour short, one hour long.
    let nights = "hoursOfDay: [22-6]\ntimezone: America/New_York";
    check(
        nights,
        "--from 2026-03-08T01:00:00Z --days 1",
        &["2026-03-08T03:00:00Z 2026-03-08T11:00:00Z schedule"],
    );
    check(
        nights,
        "--from 2026-11-01T01:00:00Z --days 1",
        &["2026-11-01T02:00:00Z 2026-11-01T12:00:00Z schedule"],
    );
    // An hour that does not come opens when it would have ended; one that comes twice counts twice.
    let two = "hoursOfDay: ['2']\ntimezone: Europe/Berlin";
    check(two, "--from 2026-03-28T23:00:00Z --days 1", &[]);
    check(
        two,
        "--from 2026-10-24T22:00:00Z --days 1",
        &["2026-10-25T00:00:00Z 2026-10-25T02:00:00Z schedule"],
    );
    // Half an hour on Lord Howe Island.
    let early = "windows: [{from: 'sun 01:45', to: 'sun 02:15'}]\ntimezone: Australia/Lord_Howe";
    check(
        early,
        "--from 2026-04-04T12:00:00Z --days 1",
        &["2026-04-04T14:45:00Z 2026-04-04T15:45:00Z window"],
    );
    check(
        early,
        "--from 2026-10-03T12:00:00Z --days 1",
        &["2026-10-03T15:15:00Z 2026-10-03T15:30:00Z window"],
    );
}

#[test]
fn a_range_of_ten_years_is_answered() {
    let object =
        only("hoursOfDay: ['9']\ntimezone: Europe/Berlin", "--from 2026-01-01T00:00:00Z --days 3660");
    assert_eq!(windows(&object).len(), 3660);
}

#[test]
fn every_example_is_valid_and_up_at_some_time() {
    let mut examples = 0;
    for entry in std::fs::read_dir(crate::program::root().join("examples")).expect("examples") {
        let path = entry.expect("an entry").path();
        let line = format!("-f {} -o json --from 2026-12-01T00:00:00Z --days 40", path.display());
        for object in preview(&line).json().as_array().expect("an array") {
            assert!(!windows(object).is_empty(), "{} of {}", object["name"], path.display());
            examples += 1;
        }
    }
    assert!(examples >= 5, "{examples}");
}
