//! Steps with a duration: each starts when it is first queried.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The start times of the steps.
#[derive(Debug)]
pub(super) struct Stopwatch<K> {
    began: BTreeMap<K, Instant>,
}

impl<K> Default for Stopwatch<K> {
    fn default() -> Self {
        Self { began: BTreeMap::new() }
    }
}

impl<K: Ord> Stopwatch<K> {
    /// The remaining time of a step; `None` when it is over.
    pub(super) fn rest(&mut self, step: K, takes: Duration) -> Option<Duration> {
        let began = *self.began.entry(step).or_insert_with(Instant::now);
        Some((began + takes).saturating_duration_since(Instant::now())).filter(|rest| !rest.is_zero())
    }

    /// Resets a step: it starts again at the next query.
    pub(super) fn reset(&mut self, step: &K) {
        self.began.remove(step);
    }

    /// Starts a step now, again if it has started before.
    pub(super) fn restart(&mut self, step: K) {
        self.began.insert(step, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_begins_with_the_first_question() {
        let (mut steps, takes) = (Stopwatch::default(), Duration::from_secs(10));
        assert_eq!(steps.rest("a", takes), Some(takes));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(steps.rest("a", takes), Some(Duration::from_secs(6)));
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(steps.rest("a", takes), None);
        steps.reset(&"a");
        assert_eq!(steps.rest("a", takes), Some(takes));
    }
}
