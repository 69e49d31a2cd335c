//! Entries of `daysOfWeek`.

use super::combination;
use crate::FieldError;
use five_spot_api::rules;
use std::ops::BitOr;

/// The words for the days, from Monday on.
const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A set of weekdays, counted from Monday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::schedule) struct Weekdays(u8);

impl Weekdays {
    pub(in crate::schedule) const ALL: Self = Self(0b111_1111);

    /// Reads `mon`, `mon-fri`, `fri-mon` or a comma combination of such.
    pub(in crate::schedule) fn parse(entry: &str, path: &str) -> Result<Self, FieldError> {
        combination(entry, weekday, Self::range)
            .ok_or_else(|| FieldError::refused(path, entry, &rules::DAYS_OF_WEEK))
    }

    /// Both ends included; a range that ends before it begins goes over the end of the week.
    fn range(first: usize, last: usize) -> Self {
        let length = (7 + last - first) % 7;
        Self((0..=length).fold(0, |days, step| days | 1 << ((first + step) % 7)))
    }

    pub(in crate::schedule) fn iter(self) -> impl Iterator<Item = usize> {
        (0..7).filter(move |day| self.0 & (1 << day) != 0)
    }
}

impl BitOr for Weekdays {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Days since Monday.
pub(super) fn weekday(name: &str) -> Option<usize> {
    NAMES.iter().position(|&known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &str, days: &[usize]) {
        let parsed = Weekdays::parse(entry, "days").map(|set| set.iter().collect::<Vec<_>>());
        assert_eq!(parsed.as_deref(), Ok(days), "{entry}");
    }

    #[test]
    fn days_ranges_and_combinations() {
        check("mon", &[0]);
        check("sun", &[6]);
        check("mon-fri", &[0, 1, 2, 3, 4]);
        check("tue-tue", &[1]);
        check("mon-sun", &[0, 1, 2, 3, 4, 5, 6]);
        check("fri-mon", &[0, 4, 5, 6]);
        check("tue-mon", &[0, 1, 2, 3, 4, 5, 6]);
        check("mon,wed,fri-sat", &[0, 2, 4, 5]);
        check("mon,mon-tue", &[0, 1]);
    }

    #[test]
    fn anything_else_is_refused() {
        let too_long = "mon,".repeat(16) + "mon";
        for entry in [
            "",
            ",",
            "mon,",
            ",mon",
            "mon,,tue",
            "monday",
            "monday-friday",
            "Mon",
            "MON",
            "mo",
            "mon-",
            "-mon",
            "mon--tue",
            "mon-tue-wed",
            "mon - fri",
            "mon, tue",
            " mon",
            "mon ",
            "1",
            "0-4",
            "*",
            "mon–fri",
            "mön",
            &too_long,
        ] {
            assert!(Weekdays::parse(entry, "days").is_err(), "{entry}");
        }
    }

    #[test]
    fn the_message_says_what_was_found_and_what_is_allowed() {
        let error = Weekdays::parse("monday-friday", "spec.schedule.daysOfWeek[0]").unwrap_err();
        assert_eq!(error.field, "spec.schedule.daysOfWeek[0]");
        assert!(error.message.starts_with(r#"found "monday-friday"; must be a weekday (mon, "#), "{error}");
    }
}
