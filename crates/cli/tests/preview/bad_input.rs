//! Everything that can be wrong gets a message with the file, the document, the field and what is allowed,
//! the right exit code, and nothing on stdout.

use crate::machine::machine;
use crate::program::{answer, command, directory, five_spot, preview, preview_of};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const INVALID: i32 = 2;
const FAILED: i32 = 1;

/// The input is refused, and each line of the refusal holds the words that are expected of it.
fn check(input: impl AsRef<[u8]>, expected: &[&str]) {
    let refusal = preview_of(input, "-o json").refusal(INVALID);
    let lines: Vec<&str> = refusal.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{refusal}");
    for (line, words) in lines.iter().zip(expected) {
        for word in words.split(" .. ") {
            assert!(line.contains(word), "{word:?} is missing in {line:?}");
        }
    }
}

#[test]
fn files_that_are_not_manifests_are_refused() {
    let nothing =
        "error: standard input: it contains no document; expected 5spot.finos.org/v1alpha1 ScheduledMachine";
    check("", &[nothing]);
    check(" \n\t\n", &[nothing]);
    check("# only a comment\n", &[nothing]);
    check("---\n---\n", &[nothing]);
    check("null\n", &[nothing]);
    check("\u{feff}", &[nothing]);
    check(
        "Dear all,\nthe machine is broken.\n",
        &["document 1: it is a string .. apiVersion: 5spot.finos.org/v1alpha1"],
    );
    check("[1, 2]", &["document 1: it is a list; expected an object"]);
    check("a: b: c", &["document 1: it is not valid YAML: .. (line 1, column 5)"]);
    check("<html>\n<body>&nbsp;</body>\n", &["document 1: it is a string"]);
    check(b"\x7fELF\x02\x01\x01\x00", &["standard input: it is not text: line 1 has a NUL"]);
    check(b"\x89PNG\r\n", &["standard input: it is not text: line 1 is not UTF-8"]);
    check(b"\xff\xfek\x00i\x00", &["standard input: it is UTF-16; save it as UTF-8"]);
    check(vec![b'#'; 100_000_000], &["standard input: it is larger than 16 MiB"]);
}

#[test]
fn deep_nesting_and_alias_bombs_are_refused() {
    check("[".repeat(1_000_000), &["document 1: it is nested more than 64 levels deep"]);
    check("{a: ".repeat(1_000_000), &["document 1: it is nested more than 64 levels deep"]);
    check("{\"a\":".repeat(1_000_000), &["document 1: it is nested more than 64 levels deep"]);
    check("- ".repeat(1_000_000), &["document 1: it is nested more than 64 levels deep"]);
    let level = |level: u32| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        format!("a{level}: &a{level} [{aliases}]\n")
    };
    let bomb =
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned() + &(1..20).map(level).collect::<Vec<_>>().concat();
    check(bomb, &["document 1: it is too large once its aliases are resolved"]);
    check("a: &a [*a]\n", &["document 1: it is not valid YAML"]);
}

#[test]
fn ambiguous_yaml_is_refused() {
    check("a: 1\na: 2\n", &["document 1: the key \"a\" occurs twice in one object (line 2, column 1)"]);
    check("{\"a\": 1, \"a\": 2}", &["document 1: the key \"a\" occurs twice"]);
    check("a:\n\t- b\n", &["document 1: it is not valid YAML: .. (line 2, column"]);
    check("a: *nowhere\n", &["document 1: it is not valid YAML: reference to unknown value"]);
}

#[test]
fn other_groups_and_versions_are_refused() {
    check(
        "{}",
        &["document 1: apiVersion: required; a ScheduledMachine has apiVersion: 5spot.finos.org/v1alpha1"],
    );
    check("apiVersion: 5spot.finos.org/v1alpha1", &["document 1: kind: required"]);
    check(
        machine("m", "hoursOfDay: ['9']").replace("v1alpha1", "v1"),
        &["document 1 (m): apiVersion: \"5spot.finos.org/v1\" .. only \"5spot.finos.org/v1alpha1\""],
    );
    check(
        "{apiVersion: v1, kind: List, items: {}}",
        &["document 1: items: must be a list of objects, not an object"],
    );
    check("{apiVersion: v1, kind: List, items: [1]}", &["document 1.items[0]: it is a number"]);
}

#[test]
fn every_class_of_bad_value_names_its_field_and_what_is_allowed() {
    for (fields, expected) in [
        ("hoursOfDay: ['24']", "spec.schedule.hoursOfDay[0] .. \"24\" .. an hour from 0 to 23"),
        ("hoursOfDay: ['9:00-17:00']", "spec.schedule.hoursOfDay[0] .. such as 9-17"),
        ("hoursOfDay: [9]", "spec.schedule.hoursOfDay[0] .. must be of type string"),
        ("hoursOfDay: '9-17'", "spec.schedule.hoursOfDay .. must be of type array"),
        ("daysOfWeek: [monday-friday]", "spec.schedule.daysOfWeek[0] .. mon, tue, wed"),
        ("daysOfWeek: [Mon]", "spec.schedule.daysOfWeek[0] .. mon, tue, wed"),
        ("enabled: true", "spec.schedule .. at least one of daysOfWeek, hoursOfDay and windows"),
        (
            "daysOfWeek: [mon]\ntimezone: Europe/Berln",
            "spec.schedule.timezone .. Europe/Berln .. Europe/Berlin or UTC",
        ),
        (
            "daysOfWeek: [mon]\ntimezone: '+02:00'",
            "spec.schedule.timezone .. an offset such as +02:00 is not",
        ),
        ("daysOfWeek: [mon]\nenabled: maybe", "spec.schedule.enabled .. must be of type boolean"),
        ("daysOfWeek: [mon]\nleadTime: 25h", "spec.schedule.leadTime .. up to 24h"),
        ("daysOfWeek: [mon]\nleadTime: PT5M", "spec.schedule.leadTime .. such as 90s, 5m or 2h"),
        ("windows: [{from: 'fri 21:30', to: 'fri 21:30'}]", "spec.schedule.windows[0].to .. empty"),
        (
            "windows: [{from: 'fri 24:00', to: 'mon 06:00'}]",
            "spec.schedule.windows[0].from .. such as fri 21:30",
        ),
        ("windows: [{from: 'fri 21:30'}]", "spec.schedule.windows[0].to .. Required value"),
        (
            "daysOfWeek: [mon]\nexceptions: [{date: 2026-02-30, state: open}]",
            "spec.schedule.exceptions[0].date .. a date that exists",
        ),
        (
            "daysOfWeek: [mon]\nexceptions: [{date: 2026-02-03, state: ajar}]",
            "spec.schedule.exceptions[0].state .. open",
        ),
        (
            "daysOfWeek: [mon]\ndayOfWeek: [tue]",
            "spec.schedule.dayOfWeek: unknown field; known here: daysOfWeek, enabled",
        ),
        ("daysOfWeek: [mon]\nspec.priorty: 3", "spec.priorty: unknown field; known here: .. priority"),
        ("daysOfWeek: [mon]\nspec.priority: 101", "spec.priority .. 100"),
        (
            "daysOfWeek: [mon]\nspec.override: {state: up, until: '2026-11-15T09:00:00'}",
            "spec.override.until .. RFC 3339",
        ),
        (
            "daysOfWeek: [mon]\nspec.override: {state: sideways, until: '2026-11-15T09:00:00Z'}",
            "spec.override.state .. up",
        ),
    ] {
        check(machine("m", fields), &[&format!("error: standard input: document 1 (m): {expected}")]);
    }
}

#[test]
fn invalid_metadata_is_reported_too() {
    let with = |metadata: &str| machine("m", "hoursOfDay: ['9']").replace("  name: m\n", metadata);
    check(with("  labels: {}\n"), &["document 1: metadata.name .. required"]);
    check(with("  name: 5\n"), &["document 1: metadata.name .. must be of type string"]);
    check(with("  name: No_Good\n"), &["document 1 (No_Good): metadata.name .. lower case"]);
    check(with(&format!("  name: {}\n", "n".repeat(54))), &["metadata.name .. at most 53 characters"]);
    check(
        with("  name: m\n  namespace: No_Good\n"),
        &["document 1 (m): metadata.namespace .. lower-case letters"],
    );
    check(with("  name: m\n  namespace: 5\n"), &["document 1 (m): metadata .. expected a string"]);
    check(with("  name: m\n  labels: [a]\n"), &["document 1 (m): metadata"]);
}

#[test]
fn every_error_of_every_bad_object_is_reported() {
    let input = [
        machine("fine", "hoursOfDay: ['9']"),
        machine("first", "hoursOfDay: ['24']\ntimezone: Mars/Olympus\ndaysOfWeek: [monday]"),
        "---\na: [1\n".to_owned(),
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n".to_owned(),
        machine("last", "hoursOfDay: [25]\ntimezone: Mars/Olympus\nspec.nonsense: 1"),
    ]
    .concat();
    check(
        input,
        &[
            "note: standard input: document 4 (other): skipped: kind ConfigMap is not ScheduledMachine",
            "error: standard input: document 2 (first): spec.schedule.daysOfWeek[0]",
            "error: standard input: document 2 (first): spec.schedule.hoursOfDay[0]",
            "error: standard input: document 2 (first): spec.schedule.timezone",
            "error: standard input: document 3: it is not valid YAML",
            "error: standard input: document 5 (last): spec.nonsense",
            "error: standard input: document 5 (last): spec.schedule.hoursOfDay[0] .. must be of type string",
            "error: standard input: document 5 (last): spec.schedule.timezone",
        ],
    );
}

#[test]
fn nothing_in_a_file_can_steer_the_terminal() {
    let kind = "{apiVersion: v1, kind: \"\\e]0;x\\a\", metadata: {name: \"\\e[31m\"}}\n";
    let field = machine("m", "hoursOfDay: ['9']\n\"\\e[2J\": 1\ntimezone: \"\\e[1m\"");
    let refusal = preview_of(format!("{kind}{field}"), "").refusal(INVALID);
    assert_eq!(refusal.lines().count(), 3, "{refusal}");
    assert!(refusal.chars().all(|c| c == '\n' || !c.is_control()), "{refusal:?}");
}

#[test]
fn line_ends_and_byte_order_marks_make_no_difference() {
    let plain = machine("m", "hoursOfDay: ['9']\ntimezone: Europe/Berlin");
    let line = "-o json --from 2026-11-15T00:00:00Z";
    let expected = preview_of(&plain, line).text();
    assert_eq!(preview_of(plain.replace('\n', "\r\n"), line).text(), expected);
    assert_eq!(preview_of(format!("\u{feff}{plain}"), line).text(), expected);
}

#[test]
fn unreadable_files_are_a_failure_not_invalid_input() {
    let files = directory(&[("fine.yaml", &machine("m", "hoursOfDay: ['9']")), ("bad.yaml", "a: [")]);
    let path = |name: &str| files.path().join(name).display().to_string();
    let missing = preview(&format!("-f {} -f {}", path("fine.yaml"), path("missing.yaml"))).refusal(FAILED);
    assert_eq!(
        missing,
        format!("error: failed to read {}: No such file or directory (os error 2)\n", path("missing.yaml"))
    );
    let directory = preview(&format!("-f {}", files.path().display())).refusal(FAILED);
    assert!(directory.contains("it is a directory; name the files in it"), "{directory}");
    let both = preview(&format!("-f {} -f {}", path("missing.yaml"), path("bad.yaml"))).refusal(INVALID);
    assert_eq!(both.lines().count(), 2, "{both}");
}

#[test]
fn a_file_without_permission_is_a_failure() {
    let files = directory(&[("secret.yaml", "a: 1")]);
    let path = files.path().join("secret.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("permissions");
    if File::open(&path).is_ok() {
        return; // Whoever runs this may read everything.
    }
    let refusal = preview(&format!("-f {}", path.display())).refusal(FAILED);
    assert!(refusal.contains("Permission denied"), "{refusal}");
}

#[test]
fn a_large_file_is_refused_without_reading_it() {
    let files = directory(&[("large.yaml", "")]);
    let path = files.path().join("large.yaml");
    File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(100_000_000))
        .expect("a sparse file");
    let refusal = preview(&format!("-f {}", path.display())).refusal(INVALID);
    assert!(refusal.contains("it is larger than 16 MiB"), "{refusal}");
}

#[test]
fn wrong_usage() {
    for (line, words) in [
        ("", "--filename <FILE>"),
        ("-f", "a value is required"),
        ("machines.yaml", "to read a file, write -f machines.yaml"),
        ("-f - -f -", "standard input can be read only once"),
        ("-f a.yaml -o xml", "[possible values: text, json, yaml, svg]"),
        ("-f a.yaml --days 0", "0 is not in 1..=3660"),
        ("-f a.yaml --days 4000", "4000 is not in 1..=3660"),
        ("-f a.yaml --days -1", "-1"),
        ("-f a.yaml --days two", "invalid value 'two' for '--days <N>'"),
        ("-f a.yaml --days 2 --to 2026-11-15T09:00:00Z", "'--days <N>' cannot be used with '--to <RFC3339>'"),
        ("-f a.yaml --from 2026-11-15", "expected RFC 3339 with a zone, such as 2026-11-15T09:00:00Z"),
        ("-f a.yaml --from 2026-11-15T09:00:00", "expected RFC 3339 with a zone"),
        ("-f a.yaml --from 2026-02-30T09:00:00Z", "no such time"),
        (
            "-f a.yaml --from 2026-11-15T09:00:00Z --to 2026-11-15T09:00:00Z",
            "is not after --from 2026-11-15T09:00:00Z",
        ),
        ("-f a.yaml --from 2026-11-15T09:00:00Z --to 2046-11-15T09:00:00Z", "at most 3660 days"),
        ("-f a.yaml --from 9999-12-01T00:00:00Z", "between the years 1970 and 9998"),
        ("-f a.yaml --width 10", "10 is not in 40..=400"),
        ("-f a.yaml --color sometimes", "[possible values: auto, always, never]"),
    ] {
        let refusal = preview(line).refusal(INVALID);
        assert!(refusal.starts_with("error: ") && refusal.contains(words), "{line}: {refusal}");
    }
}

#[test]
fn the_program_has_help_and_a_version() {
    let help = five_spot(&["--help"]).text();
    for words in
        ["Usage: 5spot <COMMAND>", "preview", "sandbox", "Without a command, 5spot runs the controller"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(five_spot(&["preview", "--help"]).text().contains("Exit status:"));
    assert_eq!(five_spot(&["--version"]).text(), format!("5spot {}\n", env!("CARGO_PKG_VERSION")));
    assert!(five_spot(&["prevew"]).refusal(INVALID).contains("'preview'"));
    let versions = five_spot(&["version", "-o", "json"]).json();
    assert_eq!(versions["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(versions["apiVersion"], "5spot.finos.org/v1alpha1");
    let zones = versions["timeZoneDatabase"].as_str();
    assert!(zones.is_some_and(|version| version.starts_with("20")), "{versions}");
}

#[test]
fn without_a_command_the_controller_starts() {
    let alone = answer(command(&[]).env("KUBECONFIG", "/nowhere").stdin(Stdio::null()));
    assert_eq!(alone.code, FAILED, "{alone:?}");
    assert!(alone.stdout.contains("try `5spot sandbox`, which needs no cluster"), "{alone:?}");
    let with_flag = answer(command(&["--no-such-flag"]).stdin(Stdio::null()));
    assert_eq!(with_flag.code, INVALID, "{with_flag:?}");
    assert!(!format!("{with_flag:?}").contains("preview"), "{with_flag:?}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = command(&["preview", "-f", "examples/fleet.yaml", "--days", "3660"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), stderr.contains("panicked")), (Some(0), false), "{stderr}");
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return;
    };
    let failed = answer(command(&["preview", "-f", "examples/office-hours.yaml"]).stdout(full));
    assert_eq!(failed.code, FAILED, "{failed:?}");
    assert!(failed.stderr.starts_with("error: failed to write the preview: "), "{failed:?}");
}
