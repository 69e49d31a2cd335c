//! The time between attempts that fail.

use std::time::Duration;

/// A delay that doubles with every failure, up to a limit, with up to a quarter taken off at random: agents of a fleet do
/// not return to an API server all at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Delays from `first` to `limit`. `seed` makes those of one agent differ from those of another.
    pub fn new(first: Duration, limit: Duration, seed: &str) -> Self {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let random = seed.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        Self { first, limit, failures: 0, random }
    }

    /// The delay after another failure.
    pub fn next_delay(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = (self.failures + 1).min(31);
        let delay = doubled.min(self.limit);
        delay.mul_f64(1.0 - self.next_random() / 4.0)
    }

    /// Starts again from the first delay.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// A number from 0 to 1 (a linear congruential generator; nothing depends on its quality).
    fn next_random(&mut self) -> f64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10), "node-1");
        for expected in [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000] {
            let delay = backoff.next_delay();
            let expected = Duration::from_millis(expected);
            assert!(delay <= expected && delay >= expected.mul_f64(0.75), "{delay:?} after {expected:?}");
        }
        for _ in 0..100 {
            assert!(backoff.next_delay() <= Duration::from_secs(10));
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(250));
    }

    #[test]
    fn two_agents_wait_differently() {
        let delays = |seed: &str| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1), seed);
            std::array::from_fn::<_, 4, _>(|_| backoff.next_delay())
        };
        assert_ne!(delays("node-1"), delays("node-2"));
    }
}
