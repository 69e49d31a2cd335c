//! The duration of the schedule queries of a reconcile.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use five_spot_api::{ScheduleException, ScheduleSpec, ScheduleState, WeeklyWindow};
use five_spot_core::schedule::{Plan, Schedule};
use jiff::civil::date;
use jiff::{SignedDuration, Timestamp, ToSpan};
use std::hint::black_box;

fn spec(days: &str, hours: &str, timezone: &str) -> ScheduleSpec {
    ScheduleSpec {
        days_of_week: Some(vec![days.to_owned()]),
        hours_of_day: Some(vec![hours.to_owned()]),
        timezone: timezone.to_owned(),
        enabled: true,
        ..ScheduleSpec::default()
    }
}

/// A year of holidays.
fn with_holidays() -> ScheduleSpec {
    let holidays = ["2026-12-24", "2026-12-25", "2026-12-26", "2026-12-31", "2027-01-01", "2027-05-01"];
    let exceptions = holidays.map(|day| closed(day.to_owned(), None)).to_vec();
    ScheduleSpec { exceptions, ..spec("mon-fri", "22-6", "Europe/Berlin") }
}

/// As much as the bounds of the CRD allow, with edges everywhere.
fn nasty() -> ScheduleSpec {
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let window = |index: usize| WeeklyWindow {
        from: format!("{} {:02}:07", days[index % 7], index % 24),
        to: format!("{} {:02}:53", days[index % 7], index % 24),
    };
    let exception = |index: i32| {
        let day = date(2026, 11, 1).checked_add((index * 2).days()).unwrap();
        closed(day.to_string(), Some(vec!["22-6,12".to_owned()]))
    };
    ScheduleSpec {
        windows: (0..64).map(window).collect(),
        exceptions: (0..400).map(exception).collect(),
        ..spec("mon-sun", "1,3,5,7,9,11", "America/New_York")
    }
}

/// Exceptions that lie inside each other, so that many of them apply on most days.
fn nested() -> ScheduleSpec {
    let exception = |index: i32| {
        let day = |year: i16, days: i32| date(year, 1, 1).checked_add(days.days()).unwrap().to_string();
        ScheduleException {
            date: None,
            from: Some(day(2000, 4 * index)),
            to: Some(day(2100, -4 * index)),
            state: if index % 2 == 0 { ScheduleState::Open } else { ScheduleState::Closed },
            hours: Some(vec!["22-6".to_owned()]),
            reason: None,
        }
    };
    ScheduleSpec {
        exceptions: (0..400).map(exception).collect(),
        ..spec("mon-sat", "0-23", "America/New_York")
    }
}

fn closed(day: String, hours: Option<Vec<String>>) -> ScheduleException {
    ScheduleException {
        date: Some(day),
        from: None,
        to: None,
        state: ScheduleState::Closed,
        hours,
        reason: None,
    }
}

fn schedules() -> [(&'static str, ScheduleSpec, SignedDuration); 7] {
    let minutes = SignedDuration::from_mins;
    [
        ("weekly in UTC", spec("mon-fri", "9-17", "UTC"), minutes(0)),
        ("weekly in New York", spec("mon-fri", "9-17", "America/New_York"), minutes(0)),
        ("nights with holidays and lead time", with_holidays(), minutes(30)),
        ("always open", spec("mon-sun", "0-23", "Europe/Berlin"), minutes(30)),
        ("nights bridged by lead time", spec("mon-sun", "0-22", "Europe/Berlin"), minutes(60)),
        ("64 windows and 400 exceptions", nasty(), minutes(30)),
        ("400 exceptions inside each other", nested(), minutes(30)),
    ]
}

fn benchmarks(criterion: &mut Criterion) {
    let now: Timestamp = "2026-11-18T12:34:56Z".parse().unwrap();
    for (name, spec, lead_time) in schedules() {
        let schedule = Schedule::parse(&spec, "spec.schedule").unwrap();
        let plan = Plan::new(schedule.clone(), lead_time, true, None);
        let mut group = criterion.benchmark_group(name);
        measure(&mut group, "parse", || Schedule::parse(black_box(&spec), "spec.schedule"));
        measure(&mut group, "is_open", || schedule.is_open(black_box(now)));
        measure(&mut group, "next_change", || schedule.next_change(black_box(now)));
        measure(&mut group, "next_boundary", || plan.next_boundary(black_box(now)));
        measure(&mut group, "next_activation", || plan.next_activation(black_box(now)));
        measure(&mut group, "next_cleanup", || plan.next_cleanup(black_box(now)));
        measure(&mut group, "wanted_since", || plan.wanted_since(black_box(now)));
        group.finish();
    }
}

fn measure<T>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, question: impl Fn() -> T) {
    group.bench_function(name, |bench| {
        bench.iter(&question);
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
