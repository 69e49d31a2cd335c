//! Facts about an object that no watch shows, kept between two reconciles. They need not survive a restart.

use crate::cache::drain_rules::DrainRules;
use crate::cache::lock::lock;
use crate::cache::managed_fields::Digest;
use crate::transport::key::ObjectKey;
use five_spot_core::Fingerprint;
use five_spot_core::world::{EvictionAttempt, ObjectView, Uid};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

/// One of the objects that are made for a `ScheduledMachine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Bootstrap,
    Infrastructure,
    Machine,
}

/// Pods of a drain that are remembered, as many as are kept of a node. A cluster can invent pods for as long as its node is
/// drained, and everybody else's drain ends.
const MOST_PODS: usize = 1000;

/// Objects of earlier machines are not worth remembering.
const MAX_COMPARED: usize = 16;

/// The facts about one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The UID of the object that all of it belongs to.
    pub(crate) uid: Option<Uid>,
    /// The results of evictions, by the UID of the pod.
    pub(crate) evictions: BTreeMap<Uid, EvictionAttempt>,
    /// The pods that the API server has reported as gone. A watch that lags may still show them.
    pub(crate) left: BTreeSet<Uid>,
    /// Our fields of each object when they were last compared. Few objects: a list is enough.
    compared: Vec<Comparison>,
    /// The rules of Cluster API for the drain in progress, once they have been looked up.
    pub(crate) drain_rules: Option<Arc<DrainRules>>,
    /// The owners of objects that are not ours and have the name of a part of ours.
    pub(crate) foreign: BTreeMap<Part, String>,
    /// The time since which the status could not be written, if the last attempt failed.
    pub(crate) unrecorded_since: Option<Timestamp>,
    /// The Machine that the API server has refused to delete.
    pub(crate) delete_refused: Option<Uid>,
    /// The Node that was there when it was read after its Machine had gone.
    pub(crate) left_behind: Option<Uid>,
    /// The term of the leader in which the facts about the object were last confirmed.
    pub(crate) confirmed_in_term: u64,
    /// A hash of the object as last seen, without its status. A change of its spec shows in its generation.
    seen: Option<u64>,
}

/// Our fields of an object when they were last compared.
#[derive(Clone, Debug)]
struct Comparison {
    uid: Uid,
    fields: Digest,
    /// True if they were as we would apply them.
    intact: bool,
}

impl Memory {
    /// The same memory for the same object, an empty one for another object of its name.
    pub(crate) fn belonging_to(&mut self, uid: &Uid) -> &mut Self {
        if self.uid.as_ref() != Some(uid) {
            *self = Self { uid: Some(uid.clone()), ..Self::default() };
        }
        self
    }

    /// The result of the eviction of a pod, `first` if there was none.
    pub(crate) fn eviction(&mut self, pod: &Uid, first: EvictionAttempt) -> &mut EvictionAttempt {
        if self.evictions.len() >= MOST_PODS && !self.evictions.contains_key(pod) {
            self.evictions.clear();
        }
        self.evictions.entry(pod.clone()).or_insert(first)
    }

    /// Notes that the API server has reported a pod as gone.
    pub(crate) fn note_left(&mut self, pod: &Uid) {
        if self.left.len() >= MOST_PODS {
            self.left.clear();
        }
        self.left.insert(pod.clone());
    }

    /// Notes the object as it was just seen, without its status. True if nothing of that has changed.
    pub(crate) fn note_seen(&mut self, object: &ObjectView, force_reconcile: Option<Fingerprint>) -> bool {
        let mut hash = DefaultHasher::new();
        (object, force_reconcile).hash(&mut hash);
        let seen = Some(hash.finish());
        std::mem::replace(&mut self.seen, seen) == seen
    }

    pub(crate) fn compare(&mut self, uid: Uid, fields: Digest, intact: bool) {
        self.compared.retain(|known| known.uid != uid);
        if self.compared.len() >= MAX_COMPARED {
            self.compared.clear();
        }
        self.compared.push(Comparison { uid, fields, intact });
    }

    /// True if our fields are unchanged since they were found to be as we would apply them.
    pub(crate) fn is_intact(&self, uid: &Uid, fields: &Digest) -> bool {
        self.comparison(uid, fields).is_some_and(|known| known.intact)
    }

    /// True if our fields, as they are now, have been compared with what we would apply.
    pub(crate) fn is_compared(&self, uid: &Uid, fields: &Digest) -> bool {
        self.comparison(uid, fields).is_some()
    }

    fn comparison(&self, uid: &Uid, fields: &Digest) -> Option<&Comparison> {
        self.compared.iter().find(|known| known.uid == *uid && known.fields == *fields)
    }
}

/// The memories of all objects. Boxed, because a map has room for nearly twice as many entries as it holds.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    by_key: Mutex<BTreeMap<ObjectKey, Box<Memory>>>,
}

impl Memories {
    /// Changes the memory of an object.
    pub(crate) fn update<R>(&self, key: &ObjectKey, change: impl FnOnce(&mut Memory) -> R) -> R {
        change(lock(&self.by_key).entry(key.clone()).or_default())
    }

    /// Reads the memory of an object, if there is one.
    pub(crate) fn read<R>(&self, key: &ObjectKey, look: impl FnOnce(&Memory) -> R) -> Option<R> {
        lock(&self.by_key).get(key).map(|memory| look(memory))
    }

    /// Removes the memory of an object.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        lock(&self.by_key).remove(key);
    }

    /// Removes all memories.
    pub(crate) fn clear(&self) {
        lock(&self.by_key).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_without_end_are_not_remembered_without_end() {
        let mut memory = Memory::default();
        let attempt = EvictionAttempt { at: Timestamp::UNIX_EPOCH, refusal: None, failed: false };
        for number in 0..10 * MOST_PODS {
            let pod = Uid::from(number.to_string());
            memory.eviction(&pod, attempt.clone()).failed = true;
            assert!(memory.eviction(&pod, attempt.clone()).failed, "the latest one is remembered");
            memory.note_left(&pod);
            assert!(memory.left.contains(&pod));
        }
        assert!(memory.evictions.len() <= MOST_PODS && memory.left.len() <= MOST_PODS);
    }
}
