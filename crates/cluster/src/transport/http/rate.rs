//! Rates per minute: requests to a cluster, failed requests, and bytes read from its watches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);

/// A token bucket that holds what one minute permits. Clones are the same bucket.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    per_minute: f64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    updated: Option<Instant>,
}

impl Rate {
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn new(per_minute: usize) -> Self {
        let per_minute = per_minute as f64;
        Self { per_minute, state: Arc::new(Mutex::new(State { tokens: per_minute, updated: None })) }
    }

    /// True if one more is permitted now.
    pub(super) fn has_any(&self) -> bool {
        self.refilled().tokens >= 1.0
    }

    /// Takes one if it is permitted.
    pub(super) fn take_one(&self) -> bool {
        let mut state = self.refilled();
        let permitted = state.tokens >= 1.0;
        if permitted {
            state.tokens -= 1.0;
        }
        permitted
    }

    /// Takes `count` even if less is left. Returns how long to wait until the bucket has recovered.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn take(&self, count: usize) -> Duration {
        let mut state = self.refilled();
        state.tokens -= count as f64;
        let missing = (-state.tokens).max(0.0);
        MINUTE.mul_f64((missing / self.per_minute).min(1.0))
    }

    /// True if the bucket is full and has no other clone, so that a new one would be the same.
    pub(super) fn is_at_rest(&self) -> bool {
        Arc::strong_count(&self.state) == 1 && self.refilled().tokens >= self.per_minute
    }

    /// Returns some tokens.
    pub(super) fn give_back(&self, count: u32) {
        let mut state = self.refilled();
        state.tokens = (state.tokens + f64::from(count)).min(self.per_minute);
    }

    fn refilled(&self) -> MutexGuard<'_, State> {
        // Every change is the assignment of a number.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(updated) = state.updated {
            let minutes = now.saturating_duration_since(updated).as_secs_f64() / MINUTE.as_secs_f64();
            state.tokens = (state.tokens + minutes * self.per_minute).min(self.per_minute);
        }
        state.updated = Some(now);
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_minutes_worth_is_permitted_at_once_and_then_one_by_one() {
        let rate = Rate::new(60);
        assert_eq!((0..100).filter(|_| rate.take_one()).count(), 60);
        advance(Duration::from_secs(2)).await;
        assert_eq!((0..100).filter(|_| rate.take_one()).count(), 2);
        assert!(!rate.has_any());
        rate.give_back(5);
        assert!(rate.has_any());
        advance(Duration::from_hours(1)).await;
        assert_eq!(
            (0..100).filter(|_| rate.take_one()).count(),
            60,
            "no more than a minute's worth is saved up"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_too_early_is_waited_for() {
        let rate = Rate::new(600);
        assert_eq!(rate.take(600), Duration::ZERO);
        assert_eq!(rate.take(100), Duration::from_secs(10));
        assert_eq!(rate.take(100), Duration::from_secs(20));
        assert_eq!(rate.take(1_000_000), MINUTE, "one wait is a minute at most");
    }
}
