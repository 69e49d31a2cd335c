//! Rate limiting of repeated warnings: each is logged once a minute, with the number of its repetitions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The time in which the same warning is logged once.
const INTERVAL: Duration = Duration::from_mins(1);

/// Different warnings within a minute that are logged. A cluster that invents new ones takes no more memory than this,
/// and fills a log no faster.
const REMEMBERED: usize = 64;

/// The warnings of one cluster or watch.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    seen: Mutex<BTreeMap<String, Seen>>,
}

#[derive(Debug)]
struct Seen {
    logged: Instant,
    repeated: u64,
}

impl Repeats {
    /// Notes a warning. Returns how often it came since it was last logged, if it is to be logged now.
    pub(crate) fn note(&self, text: &str) -> Option<u64> {
        let now = Instant::now();
        // Every change is one insertion, removal or assignment.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |seen: &Seen| now.saturating_duration_since(seen.logged) < INTERVAL;
        if let Some(known) = seen.get_mut(text) {
            if is_recent(known) {
                known.repeated += 1;
                return None;
            }
            known.logged = now;
            return Some(std::mem::take(&mut known.repeated));
        }
        if seen.len() >= REMEMBERED {
            seen.retain(|_, seen| is_recent(seen));
        }
        if seen.len() >= REMEMBERED {
            return None;
        }
        seen.insert(text.to_owned(), Seen { logged: now, repeated: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn the_same_warning_is_logged_once_a_minute_with_a_count() {
        let repeats = Repeats::default();
        let logged: Vec<Option<u64>> = (0..4).map(|_| repeats.note("refused")).collect();
        assert_eq!(logged, [Some(0), None, None, None]);
        assert_eq!(repeats.note("another"), Some(0));
        advance(INTERVAL).await;
        assert_eq!(repeats.note("refused"), Some(3));
        advance(INTERVAL).await;
        assert_eq!(repeats.note("refused"), Some(0));
    }

    #[tokio::test(start_paused = true)]
    async fn warnings_that_are_all_different_are_bounded_too() {
        let repeats = Repeats::default();
        let logged = (0..10_000).filter(|number| repeats.note(&number.to_string()).is_some()).count();
        assert_eq!(logged, REMEMBERED);
        advance(INTERVAL).await;
        assert!(repeats.note("new").is_some());
        assert_eq!(repeats.seen.lock().unwrap().len(), 1);
    }
}
