//! Days, times, zones and durations in words, the same in every form of the answer.

use crate::range::Range;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// `Sun 01 Nov`.
pub fn day(date: Date) -> String {
    date.strftime("%a %d %b").to_string()
}

/// `09:00`, or `09:00:30` where the seconds matter.
pub fn time(time: Time) -> String {
    let format = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    time.strftime(format).to_string()
}

/// `09:00 EST`, an instant by the clocks of a zone.
pub fn time_in(zone: &TimeZone, instant: Timestamp) -> String {
    format!("{} {}", time(zone.to_datetime(instant).time()), zone_at(zone, instant))
}

/// `Sun 01 Nov 09:00 EST`, an instant by the calendar and clocks of a zone.
pub fn moment_in(zone: &TimeZone, instant: Timestamp) -> String {
    format!("{} {}", day(zone.to_datetime(instant).date()), time_in(zone, instant))
}

/// `Thu 29 Oct 2026 00:00 EDT to Thu 05 Nov 2026 00:00 EST`.
pub fn range(zone: &TimeZone, range: &Range) -> String {
    let with_year = |instant: Timestamp| {
        let date = zone.to_datetime(instant).date();
        format!("{} {} {}", day(date), date.year(), time_in(zone, instant))
    };
    format!("{} to {}", with_year(range.from), with_year(range.to))
}

/// The local time that never comes, or has come twice, has no zone: `Sun 01:30`.
pub fn weekday_time(local: DateTime) -> String {
    format!("{} {}", local.strftime("%a"), time(local.time()))
}

/// The abbreviation of the zone at an instant: `EST`. Many zones have none, only `+1030`, which reads like a number.
pub fn zone_at(zone: &TimeZone, instant: Timestamp) -> String {
    let info = zone.to_offset_info(instant);
    let name = info.abbreviation();
    match name.split_at_checked("+10".len()) {
        Some((hours, minutes)) if name.starts_with(['+', '-']) => match minutes {
            "" => format!("UTC{hours}"),
            minutes => format!("UTC{hours}:{minutes}"),
        },
        Some(_) | None => name.to_owned(),
    }
}

/// `9h 30m`, exact to the second; days only from two of them on, when hours are hard to picture.
pub fn duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().unsigned_abs();
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    let (days, hours) = if hours >= 48 { (hours / 24, hours % 24) } else { (0, hours) };
    let parts: Vec<String> = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// `3 windows`, `1 window`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    #[test]
    fn durations_are_human_readable() {
        for (seconds, words) in [
            (0, "0s"),
            (90, "1m 30s"),
            (9 * 3600, "9h"),
            (9 * 3600 + 1800, "9h 30m"),
            (47 * 3600, "47h"),
            (48 * 3600, "2d"),
            (63 * 3600 + 1, "2d 15h 1s"),
            (-3600, "1h"),
        ] {
            assert_eq!(duration(SignedDuration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn zones_without_letters_are_not_mistaken_for_numbers() {
        let at: Timestamp = "2026-07-01T00:00:30Z".parse().expect("an instant");
        for (zone, words) in [
            ("America/New_York", "Tue 30 Jun 20:00:30 EDT"),
            ("Australia/Lord_Howe", "Wed 01 Jul 10:30:30 UTC+10:30"),
            ("America/Sao_Paulo", "Tue 30 Jun 21:00:30 UTC-03"),
            ("UTC", "Wed 01 Jul 00:00:30 UTC"),
        ] {
            let zone = TimeZoneDatabase::bundled().get(zone).expect("a zone");
            assert_eq!(moment_in(&zone, at), words);
        }
    }
}
