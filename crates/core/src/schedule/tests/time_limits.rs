//! Schedules that never change or only in a far future, and instants at the ends of time. All of it must be
//! answered at once: none of these tests could end if the engine went through the days one by one.

use super::at;
use super::written::{Written, in_zone};
use crate::schedule::Plan;
use jiff::{SignedDuration, Timestamp};

const ALL_YEARS: &str = "0000-01-01..9999-12-31";
const NOW: &str = "2026-11-16T12:00:00Z";

#[track_caller]
fn check(written: &Written, open: bool, next_change: Option<&str>, open_since: Option<&str>) {
    let schedule = written.schedule();
    let now = at(NOW);
    assert_eq!(schedule.is_open(now), open);
    assert_eq!(schedule.next_change(now), next_change.map(at), "next change");
    assert_eq!(schedule.open_since(now), open_since.map(at), "open since");
}

#[test]
fn open_for_ever() {
    let berlin = || in_zone("Europe/Berlin");
    check(&berlin().days("mon-sun"), true, None, None);
    check(&berlin().hours("0-23"), true, None, None);
    check(&berlin().hours("18-17"), true, None, None);
    check(&berlin().days("mon-fri").window("sat 00:00", "mon 00:00"), true, None, None);
    check(&berlin().window("wed 10:10", "fri 10:10").window("fri 10:10", "wed 10:10"), true, None, None);
}

#[test]
fn open_or_closed_as_far_as_dates_can_say() {
    let mondays = || in_zone("Europe/Berlin").days("mon");
    // Local mean time, 53 minutes and 28 seconds ahead.
    check(&mondays().open(ALL_YEARS), true, None, Some("-000001-12-31T23:06:32Z"));
    check(&mondays().closed(ALL_YEARS), false, None, None);
    check(&mondays().closed(ALL_YEARS).open("9998-03-01"), false, Some("9998-02-28T23:00:00Z"), None);
    check(
        &mondays().open(ALL_YEARS).closed_hours("9998-07-01", "12"),
        true,
        Some("9998-07-01T10:00:00Z"),
        Some("-000001-12-31T23:06:32Z"),
    );
    check(
        &in_zone("UTC").days("mon-sun").closed_hours("1000-01-01..1000-01-02", "22-6"),
        true,
        None,
        Some("1000-01-03T07:00:00Z"),
    );
}

#[test]
fn exceptions_that_undo_each_other_day_by_day() {
    let always = || in_zone("America/New_York").days("mon-sun");
    check(&always().closed_hours(ALL_YEARS, "9-17").open_hours(ALL_YEARS, "9-17"), true, None, None);
    check(&always().closed_hours(ALL_YEARS, "22-6").open_hours(ALL_YEARS, "22-6"), true, None, None);
    let undone_until_5000 = always()
        .closed_hours(ALL_YEARS, "9-17")
        .open_hours("0000-01-01..4999-12-31", "9-12")
        .open_hours("0000-01-01..4999-12-31", "13-17");
    check(&undone_until_5000, true, Some("5000-01-01T14:00:00Z"), None);
    let never = in_zone("UTC").hours("9-17").open_hours(ALL_YEARS, "12").closed_hours(ALL_YEARS, "9-17");
    check(&never, false, None, None);
}

#[test]
fn four_hundred_exceptions_that_undo_each_other() {
    let mut written = in_zone("America/New_York").days("mon-sun");
    for year in 0..200 {
        let days = format!("{:04}-01-01..{:04}-12-31", 1000 + 3 * year, 9000 - 3 * year);
        written = written.closed_hours(&days, "20-6").open_hours(&days, "20-6");
    }
    check(&written, true, None, None);
}

/// Schedules of every kind, in zones of every kind.
fn all_kinds() -> Vec<Written> {
    ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Beirut", "Etc/GMT-14", "Etc/GMT+12"]
        .into_iter()
        .flat_map(|zone| {
            [
                in_zone(zone).days("mon-sun"),
                in_zone(zone).days("mon-fri").hours("22-6"),
                in_zone(zone).window("sat 23:59", "sun 00:00"),
                in_zone(zone).hours("9").open(ALL_YEARS).closed("9999-12-31").closed("0000-01-01"),
                in_zone(zone).hours("9").closed(ALL_YEARS),
                in_zone(zone).hours("0-22").open_hours(ALL_YEARS, "12-3"),
            ]
        })
        .collect()
}

#[test]
fn the_ends_of_time_are_ordinary_instants() {
    let (first, last) = (Timestamp::MIN, Timestamp::MAX);
    let day = SignedDuration::from_hours(24);
    for written in all_kinds() {
        let schedule = written.schedule();
        assert_eq!(schedule.next_change(last), None);
        assert_eq!(schedule.open_since(first), None);
        let after_last = last.checked_sub(day * 20).unwrap();
        let mut t = after_last;
        while let Some(change) = schedule.next_change(t) {
            assert!(t < change);
            assert_ne!(schedule.is_open(change), schedule.is_open(t), "{written:?} {t} {change}");
            t = change;
        }
        for lead in [SignedDuration::ZERO, SignedDuration::from_hours(1), day] {
            let plan = Plan::new(schedule.clone(), lead, true, None);
            for now in
                [first, first.checked_add(day).unwrap(), after_last, last.checked_sub(day).unwrap(), last]
            {
                let wanted = plan.at(now).wanted();
                let (activation, cleanup) = (plan.next_activation(now), plan.next_cleanup(now));
                let turn = if wanted { cleanup } else { activation };
                assert!(
                    turn.is_none_or(|turn| now < turn && plan.at(turn).wanted() != wanted),
                    "{written:?} {now}"
                );
                assert!(plan.next_boundary(now).is_none_or(|boundary| now < boundary));
                assert!(plan.wanted_since(now).is_none_or(|since| since <= now));
            }
            assert!(plan.periods(after_last, last).iter().all(|period| period.start < period.end));
            assert!(
                plan.periods(first, first.checked_add(day * 20).unwrap())
                    .iter()
                    .all(|period| period.start < period.end)
            );
        }
    }
}
