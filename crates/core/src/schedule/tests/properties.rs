//! Properties of every schedule and every plan, at any instant.

use super::written::Written;
use crate::schedule::{Override, Plan, Schedule, parse_duration};
use five_spot_api::{
    OverrideSpec, OverrideState, ScheduleException, ScheduleSpec, ScheduleState, WeeklyWindow,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::{collection, option, sample};

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Zones with every kind of step: none, half an hour, one hour, two hours, at midnight, over midnight, by lunar years.
const ZONES: [&str; 10] = [
    "UTC",
    "Asia/Kolkata",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Casablanca",
];
/// The years in which everything happens, as days since 1970.
const DAYS_OF_2026_AND_2027: std::ops::Range<i64> = 20_454..21_184;
const TICK: SignedDuration = SignedDuration::from_nanos(1);

fn days() -> impl Strategy<Value = String> {
    let range = (sample::select(&DAYS[..]), sample::select(&DAYS[..]))
        .prop_map(|(first, last)| format!("{first}-{last}"));
    prop_oneof![sample::select(&DAYS[..]).prop_map(str::to_owned), range]
}

fn hours() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..24_u8).prop_map(|hour| hour.to_string()),
        (0..24, 0..24).prop_map(|(first, last)| format!("{first}-{last}"))
    ]
}

fn minute_of_week() -> impl Strategy<Value = String> {
    (sample::select(&DAYS[..]), 0..24, 0..60)
        .prop_map(|(day, hour, minute)| format!("{day} {hour:02}:{minute:02}"))
}

fn window() -> impl Strategy<Value = WeeklyWindow> {
    let ends = (minute_of_week(), minute_of_week()).prop_filter("an empty window", |(from, to)| from != to);
    ends.prop_map(|(from, to)| WeeklyWindow { from, to })
}

fn date(day: i64) -> String {
    Timestamp::from_second(day * 86_400).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}

fn exception() -> impl Strategy<Value = ScheduleException> {
    let state = prop_oneof![Just(ScheduleState::Open), Just(ScheduleState::Closed)];
    let length = prop_oneof![4 => 0..3_i64, 1 => 0..1_000_i64];
    (DAYS_OF_2026_AND_2027, length, state, option::of(collection::vec(hours(), 1..3))).prop_map(
        |(first, length, state, hours)| ScheduleException {
            date: None,
            from: Some(date(first)),
            to: Some(date(first + length)),
            state,
            hours,
            reason: None,
        },
    )
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let lists = (
        option::of(collection::vec(days(), 1..3)),
        option::of(collection::vec(hours(), 1..3)),
        collection::vec(window(), 0..4),
        collection::vec(exception(), 0..6),
    );
    (lists, sample::select(&ZONES[..])).prop_map(
        |((days_of_week, hours_of_day, windows, exceptions), zone)| {
            let nothing_opens_it = days_of_week.is_none() && hours_of_day.is_none() && windows.is_empty();
            let days_of_week = if nothing_opens_it { Some(vec!["mon-fri".to_owned()]) } else { days_of_week };
            let timezone = zone.to_owned();
            Written(ScheduleSpec {
                days_of_week,
                hours_of_day,
                timezone,
                windows,
                exceptions,
                ..ScheduleSpec::default()
            })
            .schedule()
        },
    )
}

/// Any instant of two years, and often one close to an edge.
fn instant() -> impl Strategy<Value = Timestamp> {
    let quarter = (DAYS_OF_2026_AND_2027, 0..96_i64).prop_map(|(day, quarter)| day * 86_400 + quarter * 900);
    let nanosecond = (DAYS_OF_2026_AND_2027, 0..86_400_000_000_000_i64);
    prop_oneof![
        quarter.prop_map(|second| Timestamp::from_second(second).unwrap()),
        nanosecond.prop_map(|(day, nanosecond)| {
            Timestamp::from_nanosecond(i128::from(day) * 86_400_000_000_000 + i128::from(nanosecond)).unwrap()
        }),
    ]
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    let all = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
    prop_oneof![
        instant(),
        all.prop_map(|second| Timestamp::from_second(second).unwrap()),
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
    ]
}

fn lead_time() -> impl Strategy<Value = SignedDuration> {
    prop_oneof![
        Just(SignedDuration::ZERO),
        (1..120_i64).prop_map(SignedDuration::from_mins),
        (1..=24_i64).prop_map(SignedDuration::from_hours),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let state = prop_oneof![Just(OverrideState::Up), Just(OverrideState::Down)];
    let overriding = option::of((state, instant()).prop_map(|(state, until)| Override { state, until }));
    (schedule(), lead_time(), proptest::bool::weighted(0.9), overriding).prop_map(
        |(schedule, lead_time, enabled, overriding)| Plan::new(schedule, lead_time, enabled, overriding),
    )
}

fn before(t: Timestamp) -> Timestamp {
    t.checked_sub(TICK).unwrap()
}

fn days_after(t: Timestamp, days: i64) -> Timestamp {
    t.checked_add(SignedDuration::from_hours(24 * days)).unwrap()
}

/// Instants from one to another, close enough together to meet most of what happens in between.
fn steps(from: Timestamp, to: Timestamp, count: i32) -> impl Iterator<Item = Timestamp> {
    let step = to.duration_since(from) / count;
    (0..count).map(move |index| from.checked_add(step * index).unwrap())
}

proptest! {
    #[test]
    fn the_next_change_is_the_first(schedule in schedule(), now in instant()) {
        let open = schedule.is_open(now);
        let change = schedule.next_change(now);
        if let Some(change) = change {
            prop_assert!(now < change);
            prop_assert_ne!(schedule.is_open(change), open);
            prop_assert_eq!(schedule.is_open(before(change)), open);
        }
        for t in steps(now, change.unwrap_or(days_after(now, 30)), 200) {
            prop_assert_eq!(schedule.is_open(t), open, "at {}", t);
        }
    }

    #[test]
    fn open_since_is_the_last_change(schedule in schedule(), now in instant()) {
        let since = schedule.open_since(now);
        if let Some(since) = since {
            prop_assert!(since <= now);
            prop_assert!(!schedule.is_open(before(since)));
            for t in steps(since, now, 200) {
                prop_assert!(schedule.is_open(t), "at {}", t);
            }
            prop_assert_eq!(schedule.next_change(before(since)), Some(since));
            prop_assert_eq!(schedule.open_since(since), Some(since));
        } else {
            prop_assert!(!schedule.is_open(now) || schedule.is_open(Timestamp::MIN));
        }
    }

    #[test]
    fn spans_are_what_is_open(schedule in schedule(), from in instant(), days in 0..40_i64) {
        let to = days_after(from, days);
        let spans = schedule.spans(from, to);
        for span in &spans {
            prop_assert!(from <= span.start && span.start < span.end && span.end <= to);
            prop_assert!(!span.causes.is_empty());
        }
        for pair in spans.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start);
            prop_assert!(pair[0].end < pair[1].start || pair[0].causes != pair[1].causes);
        }
        let edges = spans.iter().flat_map(|span| [span.start, before(span.end), span.end]).filter(|&t| t < to);
        for t in steps(from, to, 300).chain(edges).filter(|_| from < to) {
            let inside = spans.iter().any(|span| span.start <= t && t < span.end);
            prop_assert_eq!(schedule.is_open(t), inside, "at {}", t);
        }
    }

    #[test]
    fn periods_are_when_a_machine_is_wanted(plan in plan(), from in instant(), days in 0..40_i64) {
        let to = days_after(from, days);
        let periods = plan.periods(from, to);
        for period in &periods {
            prop_assert!(from <= period.start && period.start < period.end && period.end <= to);
            prop_assert!(!period.causes.is_empty());
            if from < period.start {
                prop_assert_eq!(plan.next_activation(before(period.start)), Some(period.start));
                prop_assert_eq!(plan.next_activation(from).unwrap(), periods.iter().map(|p| p.start).find(|&s| from < s).unwrap());
            }
            if period.end < to {
                prop_assert_eq!(plan.next_cleanup(period.start), Some(period.end));
                prop_assert_eq!(plan.next_cleanup(from), periods.first().map(|first| first.end));
            }
        }
        prop_assert!(periods.windows(2).all(|pair| pair[0].end < pair[1].start));
        let edges = periods.iter().flat_map(|period| [period.start, before(period.end), period.end]).filter(|&t| t < to);
        for t in steps(from, to, 300).chain(edges).filter(|_| from < to) {
            let inside = periods.iter().any(|period| period.start <= t && t < period.end);
            prop_assert_eq!(plan.at(t).wanted(), inside, "at {}", t);
        }
    }

    #[test]
    fn activation_and_cleanup_are_changes_of_demand(plan in plan(), now in instant()) {
        let (activation, cleanup) = (plan.next_activation(now), plan.next_cleanup(now));
        for (turn, other_turn, wanted) in [(activation, cleanup, true), (cleanup, activation, false)] {
            let Some(turn) = turn else { continue };
            prop_assert!(now < turn);
            prop_assert_eq!(plan.at(turn).wanted(), wanted);
            prop_assert_eq!(plan.at(before(turn)).wanted(), !wanted);
            // Up to the turn it was otherwise, once that began.
            let from = if plan.at(now).wanted() == wanted { other_turn.unwrap() } else { now };
            for t in steps(from, turn, 100) {
                prop_assert_eq!(plan.at(t).wanted(), !wanted, "at {}", t);
            }
        }
    }

    #[test]
    fn the_next_boundary_is_never_late(plan in plan(), now in instant()) {
        let boundary = plan.next_boundary(now);
        let view = |t: Timestamp| (plan.at(t), plan.schedule().is_open(t));
        if let Some(boundary) = boundary {
            prop_assert!(now < boundary);
            prop_assert_ne!(view(boundary), view(before(boundary)));
        }
        for t in steps(now, boundary.unwrap_or(days_after(now, 30)), 200) {
            prop_assert_eq!(view(t), view(now), "at {}", t);
        }
        for turn in [plan.next_activation(now), plan.next_cleanup(now)].into_iter().flatten() {
            prop_assert!(boundary.is_some_and(|boundary| boundary <= turn));
        }
    }

    #[test]
    fn a_machine_is_wanted_since_its_period_began(plan in plan(), now in instant()) {
        let Some(since) = plan.wanted_since(now) else { return Ok(()) };
        prop_assert!(since <= now);
        prop_assert!(!plan.at(before(since)).wanted());
        for t in steps(since, now, 200) {
            prop_assert!(plan.at(t).wanted(), "at {}", t);
        }
    }

    #[test]
    fn no_instant_is_too_much(plan in plan(), now in any_instant()) {
        let schedule = plan.schedule();
        prop_assert!(schedule.next_change(now).is_none_or(|change| now < change && schedule.is_open(change) != schedule.is_open(now)));
        prop_assert!(schedule.open_since(now).is_none_or(|since| since <= now));
        prop_assert!(plan.next_boundary(now).is_none_or(|boundary| now < boundary));
        prop_assert!(plan.next_activation(now).is_none_or(|turn| now < turn && plan.at(turn).wanted()));
        prop_assert!(plan.next_cleanup(now).is_none_or(|turn| now < turn && !plan.at(turn).wanted()));
        prop_assert!(plan.wanted_since(now).is_none_or(|since| since <= now));
    }

    #[test]
    fn no_text_is_too_much(
        texts in collection::vec(r"[monhtue0-9:,\- TZ.+]{0,12}|\PC{0,8}", 10),
        zone in prop_oneof![Just("UTC".to_owned()), any::<String>()],
    ) {
        let [day, hour, from, to, date, first, last, hours, until, duration] = <[String; 10]>::try_from(texts).unwrap();
        let exception = |date, from, to| ScheduleException { date, from, to, state: ScheduleState::Open, hours: Some(vec![hours.clone()]), reason: None };
        let written = Written(ScheduleSpec {
            days_of_week: Some(vec![day]),
            hours_of_day: Some(vec![hour]),
            timezone: zone,
            windows: vec![WeeklyWindow { from, to }],
            exceptions: vec![exception(Some(date), None, None), exception(None, Some(first), Some(last))],
            ..ScheduleSpec::default()
        });
        if let Ok(schedule) = written.parse() {
            schedule.next_change(Timestamp::UNIX_EPOCH);
        }
        let _ = Override::parse(&OverrideSpec { state: OverrideState::Up, until, reason: None }, "spec.override");
        let _ = parse_duration(&duration, "spec.joinTimeout", crate::schedule::DurationBounds::OR_ZERO);
    }
}
