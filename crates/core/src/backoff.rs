//! The delays after failures: 30, 60, 120, 240, 300, 300 ... seconds, or 1, 2, 4, 8, 16, 30, 30 ... seconds while a person is
//! waiting for the machine.

use jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(30);
const FIRST_URGENT: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
/// Once a webhook that refuses the deletion of a Machine works again, its owner has to wait at most this long.
const LONGEST_URGENT: SignedDuration = SignedDuration::from_secs(30);

/// Returns the delay after a failure that follows `failures_before` consecutive failures.
pub fn delay(failures_before: u32) -> SignedDuration {
    // Five doublings already exceed the longest delay.
    FIRST.saturating_mul(1 << failures_before.min(5)).min(LONGEST)
}

/// Returns the same delay while a person is waiting for the machine.
pub fn urgent_delay(failures_before: u32) -> SignedDuration {
    // Five doublings already exceed the longest delay.
    FIRST_URGENT.saturating_mul(1 << failures_before.min(5)).min(LONGEST_URGENT)
}

/// Returns the time of the first attempt after `last`, in a series of attempts that began to fail at `start` and follow the
/// delays of [`delay`].
pub fn next_after(start: Timestamp, last: Timestamp) -> Timestamp {
    let mut attempt = start;
    for failures in 0..5 {
        attempt = attempt.saturating_add(delay(failures)).unwrap_or(Timestamp::MAX);
        if attempt > last {
            return attempt;
        }
    }
    // From here on the delays are equal, and their number can be computed.
    let waits = last.duration_since(attempt).as_secs() / LONGEST.as_secs() + 1;
    let wait = SignedDuration::from_secs(waits.saturating_mul(LONGEST.as_secs()));
    attempt.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_five_minutes() {
        let waits: Vec<i64> = (0..7).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 300, 300, 300]);
        assert_eq!(delay(u32::MAX), LONGEST);
    }

    #[test]
    fn urgent_delays_start_at_one_second() {
        let waits: Vec<i64> = (0..11).map(|failures| urgent_delay(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30]);
        assert_eq!(urgent_delay(u32::MAX), LONGEST_URGENT);
    }

    #[test]
    fn attempts_follow_the_delays() {
        let start = Timestamp::UNIX_EPOCH;
        let second = |second| Timestamp::from_second(second).unwrap();
        for (last, next) in [
            (-100, 30),
            (0, 30),
            (29, 30),
            (30, 90),
            (89, 90),
            (90, 210),
            (449, 450),
            (450, 750),
            (750, 1050),
            (1_000_000, 1_000_050),
        ] {
            assert_eq!(next_after(start, second(last)), second(next), "after {last}");
        }
        assert_eq!(next_after(start, Timestamp::MAX), Timestamp::MAX);
    }
}
