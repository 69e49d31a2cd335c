//! The source of time.
//!
//! A clock is either real, or follows `tokio`'s clock from a chosen start. While `tokio`'s clock is paused,
//! the latter is virtual time: it jumps to the next timer whenever no task can run. [`pace`] slows virtual
//! time down to a multiple of real time.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tokio::time::Instant;

/// The time source of an API server, a stand-in or a controller.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    System,
    Tokio { start: Timestamp, origin: Instant },
}

impl Clock {
    /// The wall clock.
    pub fn system() -> Self {
        Self { source: Source::System }
    }

    /// A clock that starts at `start` and advances with `tokio`'s clock, paused or not.
    ///
    /// While `tokio`'s clock is paused, this is virtual time, and runs are reproducible.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { source: Source::Tokio { start, origin: Instant::now() } }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::System => Timestamp::now(),
            Source::Tokio { start, origin } => {
                let elapsed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The current time in the format of `metadata.creationTimestamp`: whole seconds.
    pub fn stamp(&self) -> String {
        whole_seconds(self.now())
    }
}

/// A time in the format of `metav1.Time`.
pub fn whole_seconds(instant: Timestamp) -> String {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant).to_string()
}

/// Advances virtual time `speed` times as fast as real time, for as long as the future is polled.
///
/// Requires a paused `tokio` clock. Each step first sleeps in virtual time, so that all timers in it fire,
/// and then waits in a blocking task, which keeps the paused clock from advancing meanwhile.
pub async fn pace(speed: f64) {
    // Short enough to look continuous, and long enough to cost little.
    const QUANTUM: Duration = Duration::from_millis(20);
    let mut deadline = std::time::Instant::now();
    loop {
        tokio::time::sleep(QUANTUM.mul_f64(speed)).await;
        deadline += QUANTUM;
        let wait = deadline.saturating_duration_since(std::time::Instant::now());
        if tokio::task::spawn_blocking(move || std::thread::sleep(wait)).await.is_err() {
            // The runtime is shutting down.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_jumps_over_a_sleep() {
        let start: Timestamp = "2026-03-01T08:00:00Z".parse().expect("a timestamp");
        let clock = Clock::starting_at(start);
        tokio::time::sleep(Duration::from_hours(24)).await;
        assert_eq!(clock.stamp(), "2026-03-02T08:00:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn paced_time_is_a_multiple_of_real_time() {
        let real = std::time::Instant::now();
        let origin = Instant::now();
        tokio::select! {
            biased;
            () = tokio::time::sleep(Duration::from_mins(10)) => {}
            () = pace(6_000.0) => {}
        }
        assert_eq!(origin.elapsed(), Duration::from_mins(10));
        assert!(
            real.elapsed() >= Duration::from_millis(60),
            "600 s at 6,000 a second take 100 ms: {:?}",
            real.elapsed()
        );
    }
}
