//! The latest changes of one resource, for watches and for reads of earlier states.

use super::{Key, Objects};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A numbered change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub revision: u64,
    pub kind: ChangeKind,
    /// The object after the change; after a deletion, its last state with the revision of the deletion.
    pub object: Arc<Value>,
    /// The object before the change.
    pub previous: Option<Arc<Value>>,
}

/// The requested revision is older than the history; contains the oldest available one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    pub oldest: u64,
}

/// A bounded list of changes.
#[derive(Debug)]
pub(crate) struct History {
    changes: VecDeque<Change>,
    limit: usize,
    /// Changes up to and including this revision are discarded.
    forgotten: u64,
}

impl History {
    pub(super) fn new(limit: usize) -> Self {
        Self { changes: VecDeque::new(), limit, forgotten: 0 }
    }

    pub(super) fn push(&mut self, change: Change) {
        self.changes.push_back(change);
        if self.changes.len() > self.limit
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.revision;
        }
    }

    pub(super) fn forget(&mut self) {
        if let Some(latest) = self.changes.back() {
            self.forgotten = latest.revision;
        }
        self.changes.clear();
    }

    pub(super) fn since(&self, revision: u64) -> Result<Vec<Change>, TooOld> {
        self.check(revision)?;
        let first = self.changes.partition_point(|change| change.revision <= revision);
        Ok(self.changes.range(first..).cloned().collect())
    }

    /// Undoes every change after `revision`.
    pub(super) fn rewind<'a>(&self, present: &'a Objects, revision: u64) -> Result<Cow<'a, Objects>, TooOld> {
        self.check(revision)?;
        if self.changes.back().is_none_or(|latest| latest.revision <= revision) {
            return Ok(Cow::Borrowed(present));
        }
        let mut past = present.clone();
        for change in self.changes.iter().rev().take_while(|change| change.revision > revision) {
            let key = Key::of(&change.object);
            match &change.previous {
                Some(previous) => past.insert(key, previous.clone()),
                None => past.remove(&key),
            };
        }
        Ok(Cow::Owned(past))
    }

    fn check(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.forgotten { Err(TooOld { oldest: self.forgotten }) } else { Ok(()) }
    }
}
