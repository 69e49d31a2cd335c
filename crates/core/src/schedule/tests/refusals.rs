//! Invalid schedules, with the field and the message of each error.

use super::written::{Written, exception, in_zone};
use five_spot_api::{ScheduleException, ScheduleState};

/// The fields that are complained about, each with a part of what is said.
#[track_caller]
fn check(written: &Written, expected: &[(&str, &str)]) {
    let problems = written.parse().expect_err("should be refused");
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, expected.iter().map(|(field, _)| *field).collect::<Vec<_>>());
    for (problem, (_, part)) in problems.iter().zip(expected) {
        assert!(problem.message.contains(part), "{problem}");
    }
}

fn office() -> Written {
    in_zone("UTC").days("mon-fri").hours("9-17")
}

#[test]
fn days_and_hours() {
    check(
        &in_zone("UTC").days("monday-friday"),
        &[("spec.schedule.daysOfWeek[0]", r#"found "monday-friday"; must be"#)],
    );
    check(
        &in_zone("UTC").days("mon").days("caturday").hours("9").hours("24").hours("9:00-17:00"),
        &[
            ("spec.schedule.daysOfWeek[1]", r#"found "caturday""#),
            ("spec.schedule.hoursOfDay[1]", r#"found "24"; must be an hour from 0 to 23"#),
            ("spec.schedule.hoursOfDay[2]", r#"found "9:00-17:00"; must be an hour from 0 to 23"#),
        ],
    );
}

#[test]
fn lists_have_bounds() {
    let many = |count: usize, entry: &str| Some(vec![entry.to_owned(); count]);
    let mut written = office();
    written.0.days_of_week = many(17, "mon");
    written.0.hours_of_day = many(25, "9");
    for _ in 0..65 {
        written = written.window("mon 09:00", "mon 10:00");
    }
    for _ in 0..401 {
        written = written.closed("2026-12-24");
    }
    check(
        &written,
        &[
            ("spec.schedule.daysOfWeek", "found 17 entries; must have 1 to 16"),
            ("spec.schedule.hoursOfDay", "found 25 entries; must have 1 to 24"),
            ("spec.schedule.windows", "found 65 entries; must have 0 to 64"),
            ("spec.schedule.exceptions", "found 401 entries; must have 0 to 400"),
        ],
    );
    written.0.days_of_week = many(16, "mon");
    written.0.hours_of_day = many(24, "9");
    written.0.windows.pop();
    written.0.exceptions.pop();
    written.schedule();

    let hours =
        |count| ScheduleException { hours: many(count, "9"), ..exception(ScheduleState::Open, "2026-12-24") };
    office().exception(hours(8)).schedule();
    check(
        &office().exception(hours(9)),
        &[("spec.schedule.exceptions[0].hours", "found 9 entries; must have 1 to 8")],
    );
}

#[test]
fn a_list_that_is_present_must_not_be_empty() {
    let mut written = office();
    written.0.days_of_week = Some(Vec::new());
    written.0.hours_of_day = Some(Vec::new());
    let nothing =
        ScheduleException { hours: Some(Vec::new()), ..exception(ScheduleState::Open, "2026-12-24") };
    check(
        &written.exception(nothing),
        &[
            ("spec.schedule.daysOfWeek", "found 0 entries; must have 1 to 16"),
            ("spec.schedule.hoursOfDay", "found 0 entries; must have 1 to 24"),
            ("spec.schedule.exceptions[0].hours", "found 0 entries; must have 1 to 8"),
        ],
    );
}

#[test]
fn something_must_open_it() {
    let needed = "must have at least one of daysOfWeek, hoursOfDay and windows";
    check(&in_zone("UTC"), &[("spec.schedule", needed)]);
    check(&in_zone("UTC").open("2026-12-24"), &[("spec.schedule", needed)]);
    in_zone("UTC").days("mon").schedule();
    in_zone("UTC").hours("9").schedule();
    in_zone("UTC").window("mon 09:00", "mon 10:00").schedule();
}

#[test]
fn zones() {
    for zone in [
        "",
        "Local",
        "local",
        "+02:00",
        "UTC+2",
        "Mars/Base",
        "europe/berlin",
        "EUROPE/BERLIN",
        "Europe/berlin",
        "utc",
        "Europe/Berlin ",
        " UTC",
        "Europe",
        "Europe/",
        "posix/UTC",
        "right/UTC",
        "Etc/Unknown",
        "CEST",
        "EST5EDT4",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "../UTC",
        "/usr/share/zoneinfo/UTC",
        "America\\New_York",
        "Ünïcode/Zone",
        "UTC\0",
    ] {
        check(
            &in_zone(zone).days("mon"),
            &[("spec.schedule.timezone", "must be the name of an IANA time zone")],
        );
    }
    for zone in [
        "UTC",
        "Etc/UTC",
        "Europe/Berlin",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT+5",
        "EST5EDT",
        "America/Port-au-Prince",
    ] {
        assert_eq!(in_zone(zone).days("mon").schedule().timezone_name(), zone);
        assert_eq!(in_zone(zone).days("mon").schedule().timezone().iana_name(), Some(zone));
    }
}

#[test]
fn windows() {
    check(
        &office().window("mon 09:00", "mon 10:00").window("monday 9:00", "tue 24:00"),
        &[
            ("spec.schedule.windows[1].from", r#"found "monday 9:00"; must be a weekday"#),
            ("spec.schedule.windows[1].to", r#"found "tue 24:00"; must be a weekday"#),
        ],
    );
    check(
        &office().window("mon 09:00", "mon 09:00"),
        &[(
            "spec.schedule.windows[0].to",
            r#"found "mon 09:00" for both from and to; must not be equal to from"#,
        )],
    );
}

#[test]
fn exceptions() {
    let days = "must have either date, or both from and to";
    let with = |date: Option<&str>, from: Option<&str>, to: Option<&str>| {
        let [date, from, to] = [date, from, to].map(|text| text.map(str::to_owned));
        office().exception(ScheduleException {
            date,
            from,
            to,
            state: ScheduleState::Closed,
            hours: None,
            reason: None,
        })
    };
    let day = Some("2026-12-24");
    for (date, from, to) in [
        (None, None, None),
        (day, day, None),
        (day, None, day),
        (day, day, day),
        (None, day, None),
        (None, None, day),
    ] {
        check(&with(date, from, to), &[("spec.schedule.exceptions[0]", days)]);
    }
    with(day, None, None).schedule();
    with(None, day, day).schedule();
    check(
        &with(None, day, Some("2026-12-23")),
        &[("spec.schedule.exceptions[0].to", "must not be earlier than from")],
    );
    check(
        &with(Some("2026-02-30"), None, None),
        &[("spec.schedule.exceptions[0].date", r#"found "2026-02-30"; must be a date that exists"#)],
    );
    check(
        &with(None, Some("24.12.2026"), Some("")),
        &[
            ("spec.schedule.exceptions[0].from", "found \"24.12.2026\""),
            ("spec.schedule.exceptions[0].to", "found \"\""),
        ],
    );
    check(
        &office().closed("2026-12-24").closed_hours("2026-12-25", "9-25"),
        &[("spec.schedule.exceptions[1].hours[0]", r#"found "9-25"; must be an hour from 0 to 23"#)],
    );
}

#[test]
fn every_bad_field_is_reported_at_once() {
    check(
        &in_zone("Nowhere").days("x").hours("y").window("z", "mon 09:00").closed_hours("never", "z"),
        &[
            ("spec.schedule.timezone", "Nowhere"),
            ("spec.schedule.daysOfWeek[0]", "x"),
            ("spec.schedule.hoursOfDay[0]", "y"),
            ("spec.schedule.windows[0].from", "z"),
            ("spec.schedule.exceptions[0].hours[0]", "z"),
            ("spec.schedule.exceptions[0].date", "never"),
        ],
    );
}

#[test]
fn long_values_are_cut_and_control_characters_escaped() {
    let problems = in_zone("UTC").days(&"ü".repeat(1_000)).days("a\nb\u{202e}").parse().unwrap_err();
    let shown = format!("found \"{}\"...; must be", "ü".repeat(64));
    assert!(problems[0].message.starts_with(&shown), "{}", problems[0]);
    assert!(problems[1].message.starts_with(r#"found "a\nb\u{202e}"; must be"#), "{}", problems[1]);
}

#[test]
fn schedules_are_equal_if_they_are_written_alike() {
    assert_eq!(office().schedule(), office().schedule());
    assert_ne!(office().schedule(), office().closed("2026-12-24").schedule());
    assert_ne!(
        in_zone("Europe/Berlin").days("mon").schedule(),
        in_zone("Europe/Paris").days("mon").schedule()
    );
}

#[test]
fn the_database_has_a_version() {
    let version = crate::schedule::tz_database_version().unwrap();
    assert!(version.starts_with("20") && version.len() == 5, "{version}");
}
