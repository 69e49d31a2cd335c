//! The rules of a schedule, one small table each. Where nothing else is said the clock stands still.

use super::check;
use super::written::in_zone;

#[test]
fn days_by_hours() {
    check(
        &in_zone("UTC").days("mon-tue").days("fri").hours("9-11").hours("14"),
        "2026-11-16",
        "2026-11-23",
        &[
            "Mon 2026-11-16 09:00+00:00 .. Mon 2026-11-16 12:00+00:00 schedule",
            "Mon 2026-11-16 14:00+00:00 .. Mon 2026-11-16 15:00+00:00 schedule",
            "Tue 2026-11-17 09:00+00:00 .. Tue 2026-11-17 12:00+00:00 schedule",
            "Tue 2026-11-17 14:00+00:00 .. Tue 2026-11-17 15:00+00:00 schedule",
            "Fri 2026-11-20 09:00+00:00 .. Fri 2026-11-20 12:00+00:00 schedule",
            "Fri 2026-11-20 14:00+00:00 .. Fri 2026-11-20 15:00+00:00 schedule",
        ],
    );
}

#[test]
fn the_same_hours_are_other_instants_in_another_zone() {
    check(
        &in_zone("Asia/Kolkata").days("mon").hours("9"),
        "2026-11-16",
        "2026-11-17",
        &["Mon 2026-11-16 09:00+05:30 .. Mon 2026-11-16 10:00+05:30 schedule"],
    );
}

#[test]
fn days_alone_are_whole_days_and_hours_alone_are_every_day() {
    check(
        &in_zone("UTC").days("fri-mon"),
        "2026-11-16",
        "2026-11-23",
        &[
            "Mon 2026-11-16 00:00+00:00 .. Tue 2026-11-17 00:00+00:00 schedule",
            "Fri 2026-11-20 00:00+00:00 .. Mon 2026-11-23 00:00+00:00 schedule",
        ],
    );
    check(
        &in_zone("UTC").hours("23"),
        "2026-11-21",
        "2026-11-23",
        &[
            "Sat 2026-11-21 23:00+00:00 .. Sun 2026-11-22 00:00+00:00 schedule",
            "Sun 2026-11-22 23:00+00:00 .. Mon 2026-11-23 00:00+00:00 schedule",
        ],
    );
}

#[test]
fn hours_over_midnight_belong_to_the_day_on_which_they_begin() {
    check(
        &in_zone("UTC").days("fri").hours("22-6"),
        "2026-11-16",
        "2026-11-23",
        &["Fri 2026-11-20 22:00+00:00 .. Sat 2026-11-21 07:00+00:00 schedule"],
    );
    check(
        &in_zone("UTC").days("sun").hours("12-11"),
        "2026-11-15",
        "2026-11-23",
        &[
            "Sun 2026-11-15 12:00+00:00 .. Mon 2026-11-16 12:00+00:00 schedule",
            "Sun 2026-11-22 12:00+00:00 .. Mon 2026-11-23 00:00+00:00 schedule",
        ],
    );
}

#[test]
fn days_that_touch_are_one_span() {
    check(
        &in_zone("UTC").days("mon-wed").hours("0-23"),
        "2026-11-16",
        "2026-11-23",
        &["Mon 2026-11-16 00:00+00:00 .. Thu 2026-11-19 00:00+00:00 schedule"],
    );
    check(
        &in_zone("UTC").days("sat-sun").hours("20-23,0-1"),
        "2026-11-21",
        "2026-11-24",
        &[
            "Sat 2026-11-21 00:00+00:00 .. Sat 2026-11-21 02:00+00:00 schedule",
            "Sat 2026-11-21 20:00+00:00 .. Sun 2026-11-22 02:00+00:00 schedule",
            "Sun 2026-11-22 20:00+00:00 .. Mon 2026-11-23 00:00+00:00 schedule",
        ],
    );
}

#[test]
fn windows_have_minute_precision_and_may_cross_the_week() {
    check(
        &in_zone("UTC").window("fri 21:30", "mon 06:00").window("wed 12:15", "wed 12:16"),
        "2026-11-16",
        "2026-11-24",
        &[
            "Mon 2026-11-16 00:00+00:00 .. Mon 2026-11-16 06:00+00:00 window",
            "Wed 2026-11-18 12:15+00:00 .. Wed 2026-11-18 12:16+00:00 window",
            "Fri 2026-11-20 21:30+00:00 .. Mon 2026-11-23 06:00+00:00 window",
        ],
    );
}

#[test]
fn windows_add_to_days_and_hours_and_name_their_cause() {
    check(
        &in_zone("UTC")
            .days("mon")
            .hours("9-11")
            .window("mon 11:30", "mon 13:00")
            .window("mon 13:00", "mon 13:30"),
        "2026-11-16",
        "2026-11-23",
        &[
            "Mon 2026-11-16 09:00+00:00 .. Mon 2026-11-16 11:30+00:00 schedule",
            "Mon 2026-11-16 11:30+00:00 .. Mon 2026-11-16 12:00+00:00 schedule+window",
            "Mon 2026-11-16 12:00+00:00 .. Mon 2026-11-16 13:30+00:00 window",
        ],
    );
}

#[test]
fn a_closed_day_is_taken_out_from_midnight_to_midnight() {
    check(
        &in_zone("UTC").days("fri").hours("22-6").closed("2026-11-21"),
        "2026-11-16",
        "2026-11-23",
        &["Fri 2026-11-20 22:00+00:00 .. Sat 2026-11-21 00:00+00:00 schedule"],
    );
    check(
        &in_zone("UTC").days("mon-sun").closed("2026-11-17..2026-11-19"),
        "2026-11-16",
        "2026-11-23",
        &[
            "Mon 2026-11-16 00:00+00:00 .. Tue 2026-11-17 00:00+00:00 schedule",
            "Fri 2026-11-20 00:00+00:00 .. Mon 2026-11-23 00:00+00:00 schedule",
        ],
    );
}

#[test]
fn an_open_day_is_added() {
    check(
        &in_zone("UTC").days("mon").hours("9").open("2026-11-18").open_hours("2026-11-20..2026-11-21", "8-9"),
        "2026-11-16",
        "2026-11-23",
        &[
            "Mon 2026-11-16 09:00+00:00 .. Mon 2026-11-16 10:00+00:00 schedule",
            "Wed 2026-11-18 00:00+00:00 .. Thu 2026-11-19 00:00+00:00 exception",
            "Fri 2026-11-20 08:00+00:00 .. Fri 2026-11-20 10:00+00:00 exception",
            "Sat 2026-11-21 08:00+00:00 .. Sat 2026-11-21 10:00+00:00 exception",
        ],
    );
}

#[test]
fn exception_hours_across_midnight_belong_to_the_first_day() {
    check(
        &in_zone("UTC").days("mon-sun").closed_hours("2026-11-17..2026-11-18", "22-6"),
        "2026-11-16",
        "2026-11-20",
        &[
            "Mon 2026-11-16 00:00+00:00 .. Tue 2026-11-17 22:00+00:00 schedule",
            "Wed 2026-11-18 07:00+00:00 .. Wed 2026-11-18 22:00+00:00 schedule",
            "Thu 2026-11-19 07:00+00:00 .. Fri 2026-11-20 00:00+00:00 schedule",
        ],
    );
    check(
        &in_zone("UTC").days("tue").hours("3").open_hours("2026-11-20", "22-6"),
        "2026-11-18",
        "2026-11-24",
        &["Fri 2026-11-20 22:00+00:00 .. Sat 2026-11-21 07:00+00:00 exception"],
    );
    check(
        &in_zone("UTC").days("tue").hours("3").open_hours("2026-11-20..2026-11-21", "12-11"),
        "2026-11-18",
        "2026-11-24",
        &["Fri 2026-11-20 12:00+00:00 .. Sun 2026-11-22 12:00+00:00 exception"],
    );
}

#[test]
fn a_later_exception_takes_precedence() {
    let office = || in_zone("UTC").days("mon-fri").hours("8-17");
    check(
        &office().closed("2026-11-16..2026-11-20").open_hours("2026-11-18", "10-11"),
        "2026-11-16",
        "2026-11-23",
        &["Wed 2026-11-18 10:00+00:00 .. Wed 2026-11-18 12:00+00:00 exception"],
    );
    check(
        &office().open_hours("2026-11-18", "10-11").closed("2026-11-16..2026-11-20"),
        "2026-11-16",
        "2026-11-23",
        &[],
    );
    check(
        &office().open("2026-11-18").closed_hours("2026-11-18", "12-23").open_hours("2026-11-18", "20"),
        "2026-11-18",
        "2026-11-19",
        &[
            "Wed 2026-11-18 00:00+00:00 .. Wed 2026-11-18 08:00+00:00 exception",
            "Wed 2026-11-18 08:00+00:00 .. Wed 2026-11-18 12:00+00:00 exception+schedule",
            "Wed 2026-11-18 20:00+00:00 .. Wed 2026-11-18 21:00+00:00 exception",
        ],
    );
}

#[test]
fn spans_are_clipped_to_what_was_asked() {
    let schedule = in_zone("UTC").days("mon").hours("9-11").schedule();
    let spans = |from: &str, to: &str| super::shown_spans(&schedule, super::at(from), super::at(to));
    assert_eq!(
        spans("2026-11-16T10:30:15Z", "2026-11-16T11:00:00Z"),
        ["Mon 2026-11-16 10:30+00:00 .. Mon 2026-11-16 11:00+00:00 schedule"]
    );
    assert_eq!(spans("2026-11-16T12:00:00Z", "2026-11-23T09:00:00Z"), [""; 0]);
    assert_eq!(spans("2026-11-16T10:00:00Z", "2026-11-16T10:00:00Z"), [""; 0]);
    assert_eq!(spans("2026-11-17T10:00:00Z", "2026-11-16T10:00:00Z"), [""; 0]);
}
