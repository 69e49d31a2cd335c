//! Clocks that are put forward and back.

use super::check;
use super::written::in_zone;

#[test]
fn a_skipped_hour_shortens_a_window() {
    // Berlin: 02:00 becomes 03:00.
    check(
        &in_zone("Europe/Berlin").days("sat").hours("22-6"),
        "2026-03-28",
        "2026-03-30",
        &["Sat 2026-03-28 22:00+01:00 .. Sun 2026-03-29 07:00+02:00 schedule"],
    );
    check(&in_zone("Europe/Berlin").days("sun").hours("2"), "2026-03-29", "2026-03-30", &[]);
    check(
        &in_zone("Europe/Berlin").window("sun 01:30", "sun 02:30").window("sun 02:45", "sun 03:15"),
        "2026-03-29",
        "2026-03-30",
        &["Sun 2026-03-29 01:30+01:00 .. Sun 2026-03-29 03:15+02:00 window"],
    );
    check(
        &in_zone("Europe/Berlin").window("sun 02:30", "sun 03:30"),
        "2026-03-29",
        "2026-03-30",
        &["Sun 2026-03-29 03:00+02:00 .. Sun 2026-03-29 03:30+02:00 window"],
    );
}

#[test]
fn a_repeated_hour_lengthens_a_window() {
    // New York: 02:00 becomes 01:00.
    check(
        &in_zone("America/New_York").days("sun").hours("1"),
        "2026-11-01",
        "2026-11-02",
        &["Sun 2026-11-01 01:00-04:00 .. Sun 2026-11-01 02:00-05:00 schedule"],
    );
    check(
        &in_zone("America/New_York").days("sun").hours("2"),
        "2026-11-01",
        "2026-11-02",
        &["Sun 2026-11-01 02:00-05:00 .. Sun 2026-11-01 03:00-05:00 schedule"],
    );
}

#[test]
fn hour_0_ends_at_the_first_of_two_one_oclocks() {
    check(
        &in_zone("America/New_York").days("sun").hours("0"),
        "2026-11-01",
        "2026-11-02",
        &["Sun 2026-11-01 00:00-04:00 .. Sun 2026-11-01 01:00-04:00 schedule"],
    );
}

#[test]
fn a_window_does_not_flap_while_the_clock_repeats_itself() {
    check(
        &in_zone("America/New_York").window("sun 01:15", "sun 01:30"),
        "2026-11-01",
        "2026-11-02",
        &["Sun 2026-11-01 01:15-04:00 .. Sun 2026-11-01 01:30-05:00 window"],
    );
    check(
        &in_zone("America/New_York").window("sun 01:00", "sun 01:15").window("sun 01:45", "sun 02:00"),
        "2026-11-01",
        "2026-11-02",
        &["Sun 2026-11-01 01:00-04:00 .. Sun 2026-11-01 02:00-05:00 window"],
    );
}

#[test]
fn half_an_hour_on_lord_howe() {
    // 02:00 becomes 01:30 in April, and 02:30 in October.
    check(
        &in_zone("Australia/Lord_Howe").days("sun").hours("1"),
        "2026-04-05",
        "2026-04-06",
        &["Sun 2026-04-05 01:00+11:00 .. Sun 2026-04-05 02:00+10:30 schedule"],
    );
    check(
        &in_zone("Australia/Lord_Howe").window("sun 01:00", "sun 01:30").window("sun 01:45", "sun 01:50"),
        "2026-04-05",
        "2026-04-06",
        &[
            "Sun 2026-04-05 01:00+11:00 .. Sun 2026-04-05 01:30+11:00 window",
            "Sun 2026-04-05 01:45+11:00 .. Sun 2026-04-05 01:50+10:30 window",
        ],
    );
    check(
        &in_zone("Australia/Lord_Howe").days("sun").hours("2"),
        "2026-10-04",
        "2026-10-05",
        &["Sun 2026-10-04 02:30+11:00 .. Sun 2026-10-04 03:00+11:00 schedule"],
    );
}

#[test]
fn a_clock_that_is_set_back_to_midnight() {
    // Havana: 01:00 becomes 00:00.
    check(
        &in_zone("America/Havana").days("sat").hours("23"),
        "2026-10-31",
        "2026-11-02",
        &["Sat 2026-10-31 23:00-04:00 .. Sun 2026-11-01 00:00-04:00 schedule"],
    );
    check(
        &in_zone("America/Havana").days("sun").hours("0"),
        "2026-10-31",
        "2026-11-02",
        &["Sun 2026-11-01 00:00-04:00 .. Sun 2026-11-01 01:00-05:00 schedule"],
    );
    check(
        &in_zone("America/Havana").days("sat-sun").closed("2026-11-01"),
        "2026-10-31",
        "2026-11-02",
        &["Sat 2026-10-31 00:00-04:00 .. Sun 2026-11-01 00:00-04:00 schedule"],
    );
}

#[test]
fn a_clock_that_is_set_back_across_midnight() {
    // Beirut: 00:00 becomes 23:00 of the day before.
    check(
        &in_zone("Asia/Beirut").days("sat").hours("23"),
        "2026-10-24",
        "2026-10-26",
        &["Sat 2026-10-24 23:00+03:00 .. Sun 2026-10-25 00:00+02:00 schedule"],
    );
    check(
        &in_zone("Asia/Beirut").days("sat-sun").closed("2026-10-24"),
        "2026-10-24",
        "2026-10-26",
        &["Sun 2026-10-25 00:00+02:00 .. Mon 2026-10-26 00:00+02:00 schedule"],
    );
}

#[test]
fn a_clock_that_is_set_forward_from_midnight() {
    // Beirut: 00:00 becomes 01:00.
    check(
        &in_zone("Asia/Beirut").days("sat").hours("23").open_hours("2026-03-29", "0"),
        "2026-03-28",
        "2026-03-30",
        &["Sat 2026-03-28 23:00+02:00 .. Sun 2026-03-29 01:00+03:00 schedule"],
    );
    check(
        &in_zone("Asia/Beirut").days("sun").closed_hours("2026-03-29", "2-23"),
        "2026-03-28",
        "2026-03-30",
        &["Sun 2026-03-29 01:00+03:00 .. Sun 2026-03-29 02:00+03:00 schedule"],
    );
}

#[test]
fn a_day_that_does_not_exist() {
    // Samoa went over the date line at the end of the 29th of December 2011, a Thursday.
    check(
        &in_zone("Pacific/Apia").days("thu").hours("22-6"),
        "2011-12-29",
        "2012-01-01",
        &["Thu 2011-12-29 22:00-10:00 .. Sat 2011-12-31 00:00+14:00 schedule"],
    );
    check(&in_zone("Pacific/Apia").days("fri"), "2011-12-29", "2012-01-01", &[]);
    check(
        &in_zone("Pacific/Apia").days("thu-sat").closed("2011-12-30"),
        "2011-12-29",
        "2012-01-01",
        &["Thu 2011-12-29 00:00-10:00 .. Sun 2012-01-01 00:00+14:00 schedule"],
    );
}

#[test]
fn exceptions_begin_and_end_by_the_same_rule() {
    // Chatham: 03:45 becomes 02:45. Both times three o'clock is shown, hour 2 is not over yet, or hour 3 already begun.
    check(
        &in_zone("Pacific/Chatham").days("sun").hours("1-4").closed_hours("2026-04-05", "2"),
        "2026-04-05",
        "2026-04-06",
        &[
            "Sun 2026-04-05 01:00+13:45 .. Sun 2026-04-05 02:00+13:45 schedule",
            "Sun 2026-04-05 03:00+12:45 .. Sun 2026-04-05 05:00+12:45 schedule",
        ],
    );
    check(
        &in_zone("Pacific/Chatham").days("sun").hours("1-4").closed_hours("2026-04-05", "3"),
        "2026-04-05",
        "2026-04-06",
        &[
            "Sun 2026-04-05 01:00+13:45 .. Sun 2026-04-05 03:00+13:45 schedule",
            "Sun 2026-04-05 04:00+12:45 .. Sun 2026-04-05 05:00+12:45 schedule",
        ],
    );
}
