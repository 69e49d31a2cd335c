//! Entries of `hoursOfDay` and of an exception's `hours`.

use super::{combination, two_digits};
use crate::FieldError;
use crate::schedule::clock::MINUTES_PER_HOUR;
use crate::schedule::pattern::Window;
use five_spot_api::rules;
use std::ops::{BitOr, Not};

/// A set of hours of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::schedule) struct HourMask(u32);

impl HourMask {
    pub(in crate::schedule) const NONE: Self = Self(0);
    pub(in crate::schedule) const ALL: Self = Self((1 << 24) - 1);

    /// Both ends included, and nothing if the last is before the first.
    fn range(first: u8, last: u8) -> Self {
        Self((first..=last).fold(0, |hours, hour| hours | 1 << hour))
    }

    /// The hours of which something is true.
    pub(in crate::schedule) fn which(is_true: impl Fn(i64) -> bool) -> Self {
        Self((0..24).filter(|&hour| is_true(hour)).fold(0, |hours, hour| hours | 1 << hour))
    }

    pub(in crate::schedule) const fn contains(self, hour: i64) -> bool {
        self.0 >> hour & 1 != 0
    }

    #[must_use]
    pub(in crate::schedule) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The hours as windows in minutes of the day, adjoining ones as one.
    pub(in crate::schedule) fn windows(self) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for hour in (0..24).filter(|&hour| self.contains(hour)) {
            let (from, to) = (hour * MINUTES_PER_HOUR, (hour + 1) * MINUTES_PER_HOUR);
            match windows.last_mut() {
                Some(last) if last.to == from => last.to = to,
                Some(_) | None => windows.push(Window { from, to }),
            }
        }
        windows
    }
}

impl BitOr for HourMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for HourMask {
    type Output = Self;

    fn not(self) -> Self {
        Self::ALL.without(self)
    }
}

/// Hours that belong to one day. Those of a range over midnight, such as `22-6`, reach into the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::schedule) struct Hours {
    /// The hours on the day itself.
    pub(in crate::schedule) same_day: HourMask,
    /// The hours on the day after.
    pub(in crate::schedule) next_day: HourMask,
}

impl Hours {
    pub(in crate::schedule) const ALL_DAY: Self = Self { same_day: HourMask::ALL, next_day: HourMask::NONE };

    /// Reads `9`, `9-17`, `22-6` or a comma combination of such.
    pub(in crate::schedule) fn parse(entry: &str, path: &str) -> Result<Self, FieldError> {
        combination(entry, hour, Self::range)
            .ok_or_else(|| FieldError::refused(path, entry, &rules::HOURS_OF_DAY))
    }

    fn range(first: u8, last: u8) -> Self {
        if first <= last {
            Self { same_day: HourMask::range(first, last), next_day: HourMask::NONE }
        } else {
            Self { same_day: HourMask::range(first, 23), next_day: HourMask::range(0, last) }
        }
    }
}

impl BitOr for Hours {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { same_day: self.same_day | other.same_day, next_day: self.next_day | other.next_day }
    }
}

fn hour(text: &str) -> Option<u8> {
    let padded = text.len() == 2 && text.starts_with('0');
    two_digits(text).filter(|&hour| hour < 24 && !padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hours as ranges `from-to`, both included; those of the next day count from 24.
    #[track_caller]
    fn check(entry: &str, expected: &[(i64, i64)]) {
        let hours = Hours::parse(entry, "hours").unwrap();
        let in_hours = |mask: HourMask, day: i64| {
            let windows = mask.windows().into_iter();
            windows
                .map(move |window| (day * 24 + window.from / 60, day * 24 + window.to / 60 - 1))
                .collect::<Vec<_>>()
        };
        let found = [in_hours(hours.same_day, 0), in_hours(hours.next_day, 1)].concat();
        assert_eq!(found, expected, "{entry}");
    }

    #[test]
    fn hours_ranges_and_combinations() {
        check("9", &[(9, 9)]);
        check("0", &[(0, 0)]);
        check("9-17", &[(9, 17)]);
        check("9-9", &[(9, 9)]);
        check("0-23", &[(0, 23)]);
        check("22-6", &[(22, 23), (24, 30)]);
        check("23-0", &[(23, 23), (24, 24)]);
        check("12-11", &[(12, 23), (24, 35)]);
        check("9,10,11", &[(9, 11)]);
        check("8-11,13-17,23", &[(8, 11), (13, 17), (23, 23)]);
        check("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23", &[(0, 23)]);
    }

    #[test]
    fn anything_else_is_refused() {
        let too_long = "10,".repeat(21) + "10";
        for entry in [
            "",
            ",",
            "9,",
            ",9",
            "9,,10",
            "24",
            "9-24",
            "24-9",
            "-1",
            "9-",
            "-9",
            "9--17",
            "9-12-17",
            "09",
            "09-17",
            "00",
            "9 - 17",
            "9, 10",
            " 9",
            "+9",
            "9.5",
            "9:00-17:00",
            "9am",
            "*",
            "9/2",
            "100",
            "٩",
            &too_long,
        ] {
            assert!(Hours::parse(entry, "hours").is_err(), "{entry}");
        }
    }

    #[test]
    fn what_is_not_in_a_mask_is_in_its_complement() {
        let mask = HourMask::range(3, 5);
        assert_eq!(mask | !mask, HourMask::ALL);
        assert_eq!(HourMask::ALL.without(mask), !mask);
        assert_eq!(
            (mask.contains(2), mask.contains(3), mask.contains(5), mask.contains(6)),
            (false, true, true, false)
        );
    }
}
