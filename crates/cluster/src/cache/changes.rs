//! The changes that the caches report. The same change of the same object is reported once until it has been received.
//!
//! A workload cluster can report changes faster than they are handled. The changes of all other objects would wait behind
//! them, and the memory that they take would have no bound.

use crate::cache::change_cause::ChangeCause;
use crate::cache::lock::lock;
use crate::transport::key::ObjectKey;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The changes that have been sent and not received.
type Pending = Arc<Mutex<BTreeSet<(ObjectKey, ChangeCause)>>>;

/// The end of the caches.
#[derive(Clone, Debug)]
pub struct ChangeSender {
    pending: Pending,
    sender: UnboundedSender<(ObjectKey, ChangeCause)>,
}

/// The end of the program that handles the changes.
#[derive(Debug)]
pub struct ChangeReceiver {
    pending: Pending,
    receiver: UnboundedReceiver<(ObjectKey, ChangeCause)>,
}

/// A channel for changes.
#[must_use]
pub fn change_channel() -> (ChangeSender, ChangeReceiver) {
    let (sender, receiver) = unbounded_channel();
    let pending = Pending::default();
    (ChangeSender { pending: pending.clone(), sender }, ChangeReceiver { pending, receiver })
}

impl ChangeSender {
    /// Sends a change, unless the same one waits to be received.
    pub(crate) fn send(&self, key: ObjectKey, cause: ChangeCause) {
        // Locked until it is sent: the receiver removes it afterwards.
        let mut pending = lock(&self.pending);
        if !pending.insert((key.clone(), cause)) {
            return;
        }
        if self.sender.send((key, cause)).is_err() {
            // The receiver is gone only when everything ends, or if nobody waits for changes.
            pending.clear();
        }
    }
}

impl ChangeReceiver {
    /// Receives the next change. Whatever happens to the object from now on is sent again.
    pub async fn recv(&mut self) -> Option<(ObjectKey, ChangeCause)> {
        let change = self.receiver.recv().await?;
        lock(&self.pending).remove(&change);
        Some(change)
    }

    /// The next change, if there is one.
    #[cfg(test)]
    pub(crate) fn try_recv(&mut self) -> Option<(ObjectKey, ChangeCause)> {
        let change = self.receiver.try_recv().ok()?;
        lock(&self.pending).remove(&change);
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("shop", name)
    }

    #[test]
    fn a_flood_of_one_change_takes_one_place_in_the_queue() {
        let (sender, mut receiver) = change_channel();
        for _ in 0..100_000 {
            sender.send(key("hostile"), ChangeCause::Node);
        }
        sender.send(key("hostile"), ChangeCause::Object);
        sender.send(key("other"), ChangeCause::Node);
        assert_eq!(receiver.receiver.len(), 3);
        let changes: Vec<_> = std::iter::from_fn(|| receiver.try_recv()).collect();
        assert_eq!(
            changes,
            [
                (key("hostile"), ChangeCause::Node),
                (key("hostile"), ChangeCause::Object),
                (key("other"), ChangeCause::Node),
            ]
        );
    }

    #[tokio::test]
    async fn a_change_after_one_that_was_received_is_sent_again() {
        let (sender, mut receiver) = change_channel();
        for _ in 0..3 {
            sender.send(key("a"), ChangeCause::Node);
            assert_eq!(receiver.recv().await, Some((key("a"), ChangeCause::Node)));
        }
        assert!(lock(&receiver.pending).is_empty());
        assert_eq!(receiver.try_recv(), None);
    }

    #[test]
    fn changes_that_nobody_receives_take_no_memory() {
        let (sender, receiver) = change_channel();
        drop(receiver);
        sender.send(key("a"), ChangeCause::Node);
        assert!(lock(&sender.pending).is_empty());
    }
}
