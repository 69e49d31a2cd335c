//! The trust in the clock, case by case. The brake as a whole is tested with the controller: `tests/brake`.

use super::clock_trust::ClockTrust;
use crate::leader::LeaseClock;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct ManualClock(Mutex<Duration>);

impl LeaseClock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock().expect("no panic")
    }
}

/// A wall clock beside a monotonic one.
struct Clocks {
    monotonic: Arc<ManualClock>,
    wall: Timestamp,
    trust: ClockTrust,
}

impl Clocks {
    fn new() -> Self {
        let monotonic = Arc::new(ManualClock::default());
        let trust = ClockTrust::new(monotonic.clone());
        Self { monotonic, wall: Timestamp::UNIX_EPOCH, trust }
    }

    /// Lets minutes pass, while the wall clock also jumps by some, and says whether it is trusted then.
    fn pass(&mut self, minutes: u64, jump: i64, skew: Option<i64>) -> bool {
        *self.monotonic.0.lock().expect("no panic") += Duration::from_mins(minutes);
        self.wall += SignedDuration::from_mins(i64::try_from(minutes).expect("few") + jump);
        self.trust.is_trusted(self.wall, skew.map(SignedDuration::from_mins))
    }
}

#[test]
fn a_clock_that_passes_like_the_monotonic_one_is_trusted() {
    let mut clocks = Clocks::new();
    assert!(clocks.pass(0, 0, None));
    assert!(clocks.pass(600, 0, Some(0)));
    assert!(clocks.pass(1, 5, Some(5)), "five minutes are tolerated");
    assert!(clocks.pass(1, -5, Some(-5)));
}

#[test]
fn a_jump_is_distrusted_for_an_hour() {
    for jump in [6, -6, 60 * 24 * 365, -60 * 24 * 365] {
        let mut clocks = Clocks::new();
        clocks.pass(0, 0, Some(0));
        assert!(!clocks.pass(1, jump, Some(0)), "{jump}");
        assert!(!clocks.pass(59, 0, Some(0)));
        assert!(clocks.pass(1, 0, Some(0)));
    }
}

#[test]
fn a_clock_that_differs_from_the_api_server_is_not_trusted() {
    let mut clocks = Clocks::new();
    for skew in [6, -6] {
        assert!(clocks.pass(1, 0, Some(0)));
        assert!(!clocks.pass(600, 0, Some(skew)));
        assert!(!clocks.trust.has_recovered(clocks.wall, Some(SignedDuration::from_mins(skew))));
        assert!(clocks.trust.has_recovered(clocks.wall, Some(SignedDuration::ZERO)));
    }
}
