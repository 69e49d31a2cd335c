//! What is to be looked at, and when; and the loop that does so.
//!
//! Everything here is ordered, and an actor does one thing at a time: the same news give the same requests in the same
//! order.

use super::kinds::Place;
use super::scenario::Scenario;
use super::stage::{Change, Stage};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How soon something that failed is tried again, the first time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// How long the pause between tries may grow.
const LAST_RETRY: Duration = Duration::from_mins(1);

/// When to look at an object again without any news of it; never, if nothing is said.
pub(super) type Next = Option<Duration>;

/// One who looks at objects, one after the other.
pub(super) trait Actor {
    /// Which objects a change makes worth a look.
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place>;

    /// Looks at one object and does what is to be done now.
    fn attend(&mut self, place: &Place, stage: &mut Stage)
    -> impl Future<Output = kube::Result<Next>> + Send;
}

/// When each object is to be looked at. An object is in it once.
#[derive(Debug, Default)]
struct Agenda {
    due: BTreeMap<Place, Instant>,
    failures: BTreeMap<Place, u32>,
}

impl Agenda {
    /// Has an object looked at by then, or earlier if that was agreed already.
    fn no_later_than(&mut self, place: Place, then: Instant) {
        let due = self.due.entry(place).or_insert(then);
        *due = then.min(*due);
    }

    fn earliest(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes what has been due longest; of equals the first by name.
    fn take(&mut self, now: Instant) -> Option<Place> {
        let (place, _) = self.due.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due)?;
        let place = place.clone();
        self.due.remove(&place);
        Some(place)
    }

    fn succeeded(&mut self, place: Place, next: Next, now: Instant) {
        self.failures.remove(&place);
        if let Some(pause) = next {
            self.no_later_than(place, now + pause);
        }
    }

    fn failed(&mut self, place: Place, now: Instant) {
        let failures = self.failures.entry(place.clone()).or_default();
        let pause = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(*failures)).min(LAST_RETRY);
        *failures = failures.saturating_add(1);
        self.no_later_than(place, now + pause);
    }
}

/// Plays one actor, for as long as the future is polled.
pub(super) async fn play<A: Actor>(mut actor: A, mut stage: Stage, scenario: Scenario) {
    let mut agenda = Agenda::default();
    let mut changes = scenario.changes();
    loop {
        let due = agenda.earliest();
        tokio::select! {
            biased;
            change = stage.change() => {
                for place in actor.concerned(&change, &stage) {
                    agenda.no_later_than(place, Instant::now());
                }
            }
            // What hung or failed may now go on: everything is looked at again.
            Ok(()) = changes.changed() => {
                for place in stage.places() {
                    agenda.no_later_than(place, Instant::now());
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let Some(place) = agenda.take(Instant::now()) else { continue };
                match actor.attend(&place, &mut stage).await {
                    Ok(next) => agenda.succeeded(place, next, Instant::now()),
                    Err(error) => {
                        stage.notebook().object(&place, error);
                        agenda.failed(place, Instant::now());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::*;

    fn pod(name: &str) -> Place {
        Kind::pod().place("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_longest_comes_first() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        agenda.no_later_than(pod("b"), now);
        agenda.no_later_than(pod("a"), now);
        agenda.no_later_than(pod("later"), now + FIRST_RETRY);
        let taken: Vec<Place> = std::iter::from_fn(|| agenda.take(now)).collect();
        assert_eq!(taken, [pod("a"), pod("b")]);
        assert_eq!(agenda.earliest(), Some(now + FIRST_RETRY));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_ever_later_up_to_a_minute() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            agenda.failed(pod("a"), now);
            pauses.push((agenda.earliest().expect("a retry") - now).as_secs());
            agenda.take(now + LAST_RETRY);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        agenda.succeeded(pod("a"), None, now);
        assert_eq!(agenda.earliest(), None);
    }
}
