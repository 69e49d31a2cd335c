//! The order in which the controller receives the response to a write and the watch event that the write causes.
//!
//! A real API server promises no order between the two: they travel on different connections.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The time by which the later of the two is delayed. Virtual time passes only when no task is runnable, so by then the
/// controller has done everything that it does without it.
pub const SETTLES_WITHIN: Duration = Duration::from_millis(200);

/// The time between the response and the event in the ordinary order.
const NEXT: Duration = Duration::from_millis(1);

/// The time at which the event is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrder {
    /// Before the response, early enough for the controller to act on it.
    BeforeResponse,
    /// Right after the response.
    AfterResponse,
    /// After everything that the controller does upon the response.
    AfterNextReconcile,
}

impl EventOrder {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::BeforeResponse, Self::AfterResponse, Self::AfterNextReconcile];

    /// The delay of the event after the response.
    pub(super) const fn lag(self) -> Duration {
        match self {
            Self::BeforeResponse => Duration::ZERO,
            Self::AfterResponse => NEXT,
            Self::AfterNextReconcile => SETTLES_WITHIN,
        }
    }
}

impl fmt::Display for EventOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeResponse => "event-before-response",
            Self::AfterResponse => "event-after-response",
            Self::AfterNextReconcile => "event-after-next-reconcile",
        })
    }
}

/// The writes whose events are reordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reordered {
    /// The write of this number, counted from 0.
    Write(usize),
    /// All writes.
    EveryWrite,
}

impl fmt::Display for Reordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(number) => write!(f, "{number}"),
            Self::EveryWrite => f.write_str("every-write"),
        }
    }
}

/// An order for some writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// The writes.
    pub writes: Reordered,
    /// The order.
    pub order: EventOrder,
}

impl Reordering {
    /// The order for the write of a number, if it is one of those.
    pub(super) fn of_write(&self, number: usize) -> Option<EventOrder> {
        match self.writes {
            Reordered::Write(wanted) => (wanted == number).then_some(self.order),
            Reordered::EveryWrite => Some(self.order),
        }
    }
}

impl fmt::Display for Reordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.writes, self.order)
    }
}

/// The collections of one API server whose watch events are held back. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldEvents {
    holds: Arc<watch::Sender<BTreeMap<String, usize>>>,
}

impl HeldEvents {
    /// Holds back the events of a collection until the result is dropped.
    pub(super) fn hold(&self, collection: String) -> Hold {
        self.holds.send_modify(|holds| *holds.entry(collection.clone()).or_default() += 1);
        Hold { events: self.clone(), collection }
    }

    /// Waits until the events of a collection may pass.
    pub(super) async fn released(&self, collection: &str) {
        let mut holds = self.holds.subscribe();
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = holds.wait_for(|holds| !holds.contains_key(collection)).await;
    }
}

/// Holds back the events of a collection.
#[derive(Debug)]
pub(super) struct Hold {
    events: HeldEvents,
    collection: String,
}

impl Hold {
    /// Releases the events after a while.
    pub(super) fn release_after(self, lag: Duration) {
        tokio::spawn(async move {
            tokio::time::sleep(lag).await;
            drop(self);
        });
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.events.holds.send_modify(|holds| {
            if let Some(count) = holds.get_mut(&self.collection) {
                *count -= 1;
                if *count == 0 {
                    holds.remove(&self.collection);
                }
            }
        });
    }
}

/// The group and plural that a path is about, whatever the version, namespace, name and subresource: `apps/deployments`.
pub(super) fn collection(path: &str) -> String {
    let mut segments = path.trim_start_matches('/').split('/');
    let group = match segments.next() {
        Some("apis") => segments.next().unwrap_or_default(),
        Some(_) | None => "",
    };
    let _version = segments.next();
    let rest: Vec<&str> = segments.collect();
    let plural = match rest.as_slice() {
        ["namespaces", _, plural, ..] | [plural, ..] => plural,
        [] => "",
    };
    format!("{group}/{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_and_the_watch_of_its_kind_have_the_same_collection() {
        for (path, expected) in [
            ("/api/v1/pods", "/pods"),
            ("/api/v1/namespaces/desks/pods/web/eviction", "/pods"),
            ("/api/v1/namespaces/desks", "/namespaces"),
            ("/apis/cluster.x-k8s.io/v1beta1/machines", "cluster.x-k8s.io/machines"),
            (
                "/apis/cluster.x-k8s.io/v1beta2/namespaces/desks/machines/m/status",
                "cluster.x-k8s.io/machines",
            ),
            ("/version", "/"),
        ] {
            assert_eq!(collection(path), expected, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_pass_when_the_last_hold_is_gone() {
        let events = HeldEvents::default();
        let (first, second) = (events.hold("/pods".to_owned()), events.hold("/pods".to_owned()));
        events.released("/nodes").await;
        let begin = tokio::time::Instant::now();
        drop(first);
        second.release_after(SETTLES_WITHIN);
        events.released("/pods").await;
        assert_eq!(begin.elapsed(), SETTLES_WITHIN);
    }
}
