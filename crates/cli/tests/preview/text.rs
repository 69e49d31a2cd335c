//! The chart for people, over the weeks in which clocks are moved.

use crate::machine::machine;
use crate::program::{answer, command, preview, preview_of};

/// Weeks with a clock change, and an example in the zone where it happens.
const CLOCK_CHANGES: [(&str, &str, &str); 6] = [
    ("new_york_spring", "office-hours", "--from 2026-03-06T00:00:00-05:00 --days 5"),
    ("new_york_autumn", "office-hours", "--from 2026-10-30T00:00:00-04:00 --days 5"),
    ("berlin_spring", "night-batch", "--from 2026-03-27T00:00:00+01:00 --days 5"),
    ("berlin_autumn", "night-batch", "--from 2026-10-23T00:00:00+02:00 --days 5"),
    ("lord_howe_autumn", "lord-howe", "--from 2026-04-03T00:00:00+11:00 --days 4"),
    ("lord_howe_spring", "lord-howe", "--from 2026-10-02T00:00:00+10:30 --days 4"),
];

#[test]
fn weeks_in_which_clocks_are_moved() {
    for (name, example, range) in CLOCK_CHANGES {
        insta::assert_snapshot!(name, preview(&format!("-f examples/{example}.yaml {range}")).text());
    }
}

#[test]
fn effects_of_a_clock_change_are_described() {
    let check = |fields: &str, range: &str, sentences: &[&str]| {
        let text = preview_of(machine("m", fields), &format!("{range} --width 200")).text();
        for sentence in sentences {
            assert!(text.contains(sentence), "{sentence:?} is missing in:\n{text}");
        }
    };
    let (spring, autumn) =
        ("--from 2026-03-08T00:00:00-05:00 --days 1", "--from 2026-11-01T00:00:00-04:00 --days 1");
    check(
        "hoursOfDay: [9-17]\ntimezone: America/New_York",
        autumn,
        &["2026-11-01: clocks go back 1h at 02:00 EDT, to 01:00 EST; no window is affected", "25h day"],
    );
    check(
        "windows: [{from: 'sun 00:15', to: 'sun 01:30'}]\ntimezone: America/New_York",
        autumn,
        &[
            "Sun 01:30 comes twice, and the second counts: the window closes at 01:30 EST",
            "the window from Sun 01 Nov 00:15 EDT to Sun 01 Nov 01:30 EST lasts 1h longer: 2h 15m",
        ],
    );
    check(
        "hoursOfDay: ['0']\ntimezone: America/New_York",
        autumn,
        &["Sun 01:00 comes twice, and the first counts: the window closes at 01:00 EDT"],
    );
    check(
        "windows: [{from: 'sun 02:30', to: 'sun 05:00'}]\nleadTime: 5m\ntimezone: America/New_York",
        spring,
        &[
            "2026-03-08: clocks go forward 1h at 02:00 EST, to 03:00 EDT",
            "Sun 02:30 does not come that day: the window opens at 03:00 EDT",
            "23h day",
            "Sun 08 Mar 01:55 EST",
        ],
    );
    check(
        "windows: [{from: 'sun 01:00', to: 'sun 02:15'}]\ntimezone: Australia/Lord_Howe",
        "--from 2026-10-03T12:00:00Z --days 1",
        &["Sun 02:15 does not come that day: the window closes at 02:30 UTC+11", "23h30m day"],
    );
}

#[test]
fn a_window_that_the_range_cuts_off_is_not_given_a_length() {
    let fields = "daysOfWeek: [mon-sun]\ntimezone: America/New_York";
    let text = preview_of(machine("m", fields), "--from 2026-11-01T00:00:00Z --days 2").text();
    assert!(text.contains("the window around it lasts 1h longer\n"), "{text}");
    assert!(!text.contains("Transitions"), "{text}");
}

#[test]
fn lead_time_hides_no_boundary() {
    let fields = "windows: [{from: 'sun 00:00', to: 'sun 02:15'}, {from: 'sun 02:45', to: 'sun 05:00'}]
                  leadTime: 1h
                  timezone: America/New_York";
    let text = preview_of(machine("m", fields), "--from 2026-03-08T00:00:00-05:00 --days 1").text();
    assert!(text.contains("up 4h in 1 window"), "{text}");
    let spread = fields.replace("02:45", "03:30");
    let text =
        preview_of(machine("m", &spread), "--from 2026-03-08T00:00:00-05:00 --days 1 --width 120").text();
    assert!(text.contains("Sun 02:15 does not come that day: the window closes at 03:00 EDT"), "{text}");
}

#[test]
fn an_override_across_a_change_hides_its_effect() {
    let fields = "windows: [{from: 'sun 02:30', to: 'sun 05:00'}]
                  timezone: America/New_York
                  spec.override: {state: up, until: 2026-03-09T00:00:00Z}";
    let text = preview_of(machine("m", fields), "--from 2026-03-08T00:00:00-05:00 --days 1").text();
    assert!(!text.contains("does not come"), "{text}");
}

#[test]
fn a_day_that_a_zone_leaves_out_is_shown_as_skipped() {
    let text = preview_of(
        machine("m", "hoursOfDay: [8-17]\ntimezone: Pacific/Apia"),
        "--from 2011-12-29T00:00:00-10:00 --days 3",
    )
    .text();
    insta::assert_snapshot!(text);
}

#[test]
fn a_disabled_machine_says_so() {
    insta::assert_snapshot!(
        preview_of(
            machine("m", "hoursOfDay: [9-17]\nenabled: false"),
            "--from 2026-11-02T00:00:00Z --days 2"
        )
        .text()
    );
}

#[test]
fn every_kind_of_reason_in_one_week() {
    let fields = "daysOfWeek: [mon-fri]
                  hoursOfDay: [9-17]
                  leadTime: 30m
                  windows: [{from: 'sat 22:30', to: 'sun 04:00'}, {from: 'tue 16:00', to: 'tue 20:00'}]
                  exceptions: [{date: 2026-03-09, state: open, hours: [18-20]}, {date: 2026-03-12, state: closed}]
                  timezone: America/New_York
                  spec.override: {state: up, until: 2026-03-07T18:00:00Z}";
    let range = "--from 2026-03-07T00:00:00-05:00 --days 7";
    for (name, flags) in [
        ("reasons", ""),
        ("reasons_40", "--width 40"),
        ("reasons_160", "--width 160"),
        ("reasons_ascii", "--ascii"),
    ] {
        insta::assert_snapshot!(
            name,
            preview_of(machine("mixed", fields), &format!("{range} {flags}")).text()
        );
    }
    let colored = preview_of(machine("mixed", fields), &format!("{range} --color always")).text();
    for code in ["\u{1b}[35m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m", "\u{1b}[34m"] {
        assert!(colored.contains(code), "{code:?}");
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let long_name = machine(
        &"n".repeat(53),
        "hoursOfDay: [22-6]\nleadTime: 7m\ntimezone: America/Argentina/ComodRivadavia",
    );
    let files = crate::program::directory(&[("long.yaml", &long_name)]);
    let long = files.path().join("long.yaml").display().to_string();
    for (_, example, range) in CLOCK_CHANGES {
        for width in (40..=300).step_by(37) {
            let line = format!("-f examples/{example}.yaml -f {long} {range} --width {width}");
            for line in preview(&line).text().lines() {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
    }
}

#[test]
fn colour_and_characters_follow_the_surroundings() {
    let words =
        ["preview", "-f", "examples/office-hours.yaml", "--from", "2026-11-02T00:00:00Z", "--days", "1"];
    let with = |name: &str, value: &str| answer(command(&words).env(name, value)).text();
    assert!(with("LANG", "en_US.UTF-8").contains('█'));
    assert!(with("LC_ALL", "C").is_ascii());
    assert!(with("LANG", "de_DE.ISO-8859-1").is_ascii());
    assert!(!with("CLICOLOR", "1").contains('\u{1b}'), "not a terminal");
    let widest = |text: String| text.lines().map(|line| line.chars().count()).max();
    assert!(widest(with("COLUMNS", "120")) > widest(with("COLUMNS", "60")));
    assert!(widest(with("COLUMNS", "nonsense")) <= Some(80));
}

#[test]
fn a_long_list_of_transitions_is_cut_short_with_a_word() {
    let text = preview("-f examples/office-hours.yaml --from 2026-11-01T00:00:00Z --days 60").text();
    assert!(text.contains("more; -o json lists all of them"), "{text}");
}
