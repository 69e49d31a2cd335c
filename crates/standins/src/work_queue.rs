//! The work queue of an actor, and the loop that processes it.
//!
//! The queue is ordered, and an actor processes one object at a time: the same events give the same requests
//! in the same order.

use super::context::{ActorContext, Change};
use super::kinds::ObjectKey;
use super::settings::StandInSettings;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The delay of the first retry.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest delay between retries.
const LAST_RETRY: Duration = Duration::from_mins(1);

/// The time of the next reconcile of an object without a change; `None` for never.
pub(super) type Next = Option<Duration>;

/// An actor, which reconciles objects one after the other.
pub(super) trait Actor {
    /// The objects to reconcile after a change.
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey>;

    /// Reconciles one object.
    fn reconcile(
        &mut self,
        key: &ObjectKey,
        context: &mut ActorContext,
    ) -> impl Future<Output = kube::Result<Next>> + Send;
}

/// The time of the next reconcile of each object. An object is queued at most once.
#[derive(Debug, Default)]
struct WorkQueue {
    due: BTreeMap<ObjectKey, Instant>,
    failures: BTreeMap<ObjectKey, u32>,
}

impl WorkQueue {
    /// Queues an object for a time, unless it is queued for an earlier one.
    fn no_later_than(&mut self, key: ObjectKey, then: Instant) {
        let due = self.due.entry(key).or_insert(then);
        *due = then.min(*due);
    }

    fn earliest(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes the object that has been due for the longest time; of equal ones the first by name.
    fn take(&mut self, now: Instant) -> Option<ObjectKey> {
        let (key, _) = self.due.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due)?;
        let key = key.clone();
        self.due.remove(&key);
        Some(key)
    }

    fn succeeded(&mut self, key: ObjectKey, next: Next, now: Instant) {
        self.failures.remove(&key);
        if let Some(pause) = next {
            self.no_later_than(key, now + pause);
        }
    }

    fn failed(&mut self, key: ObjectKey, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(*failures)).min(LAST_RETRY);
        *failures = failures.saturating_add(1);
        self.no_later_than(key, now + pause);
    }
}

/// Runs one actor, for as long as the future is polled.
pub(super) async fn run<A: Actor>(mut actor: A, mut context: ActorContext, settings: StandInSettings) {
    let mut work_queue = WorkQueue::default();
    let mut changes = settings.changes();
    loop {
        let due = work_queue.earliest();
        tokio::select! {
            biased;
            change = context.change() => {
                for key in actor.concerned(&change, &context) {
                    work_queue.no_later_than(key, Instant::now());
                }
            }
            // Steps that hung or failed may continue now, so all objects are reconciled.
            Ok(()) = changes.changed() => {
                for key in context.keys() {
                    work_queue.no_later_than(key, Instant::now());
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let Some(key) = work_queue.take(Instant::now()) else { continue };
                match actor.reconcile(&key, &mut context).await {
                    Ok(next) => work_queue.succeeded(key, next, Instant::now()),
                    Err(error) => {
                        context.recorder().object(&key, error);
                        work_queue.failed(key, Instant::now());
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

    fn pod(name: &str) -> ObjectKey {
        Kind::pod().key("default", name)
    }

    #[tokio::test(start_paused = true)]
    async fn the_object_due_longest_comes_first() {
        let (mut work_queue, now) = (WorkQueue::default(), Instant::now());
        work_queue.no_later_than(pod("b"), now);
        work_queue.no_later_than(pod("a"), now);
        work_queue.no_later_than(pod("later"), now + FIRST_RETRY);
        let taken: Vec<ObjectKey> = std::iter::from_fn(|| work_queue.take(now)).collect();
        assert_eq!(taken, [pod("a"), pod("b")]);
        assert_eq!(work_queue.earliest(), Some(now + FIRST_RETRY));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_ever_later_up_to_a_minute() {
        let (mut work_queue, now) = (WorkQueue::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            work_queue.failed(pod("a"), now);
            pauses.push((work_queue.earliest().expect("a retry") - now).as_secs());
            work_queue.take(now + LAST_RETRY);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        work_queue.succeeded(pod("a"), None, now);
        assert_eq!(work_queue.earliest(), None);
    }
}
