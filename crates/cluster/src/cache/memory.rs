//! What is remembered of an object between two reconciles and need not survive a restart.

use crate::cache::drain_rules::DrainRules;
use crate::cache::drift::Digest;
use five_spot_core::world::{EvictionAttempt, Failures, ObjectView, Uid};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// One of the names that belong to a `ScheduledMachine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Bootstrap,
    Infrastructure,
    Machine,
}

/// Objects of earlier machines are not worth remembering.
const MAX_COMPARED: usize = 16;

/// What is remembered of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// The life of the object that all of it belongs to.
    pub(crate) uid: Option<Uid>,
    pub(crate) failures: Failures,
    /// How many decisions in a row have found a fault of the object.
    pub(crate) faults: u32,
    /// How many reconciles in a row have left something to do at once.
    pub(crate) rounds: u32,
    /// What came of evictions, by the pod's UID.
    pub(crate) evictions: BTreeMap<Uid, EvictionAttempt>,
    /// The pods that the API server has said to be gone. A watch that is late may tell of their last days yet.
    pub(crate) left: BTreeSet<Uid>,
    /// What our fields of an object were when they were last compared; few objects, so that a list is all it takes.
    compared: Vec<Comparison>,
    /// The rules of Cluster API for the drain in progress, once they have been looked up.
    pub(crate) drain_rules: Option<Arc<DrainRules>>,
    /// When what is known has to be compared with the API server, though no news came: set while the object is on its
    /// way.
    pub(crate) compare_at: Option<Timestamp>,
    /// Whose the object is that has a name of ours.
    pub(crate) foreign: BTreeMap<Place, String>,
    /// Since when the status could not be written, if the last attempt failed.
    pub(crate) unrecorded_since: Option<Timestamp>,
    /// The Machine that the API server has refused to delete.
    pub(crate) delete_refused: Option<Uid>,
    /// The term of the leader in which the facts about the object were last confirmed.
    pub(crate) confirmed_in_term: u64,
    /// What its watch has told of the object, status aside, as a hash. A change of its spec shows in its generation.
    heard: Option<u64>,
}

/// Our fields of an object when they were last compared.
#[derive(Clone, Debug)]
struct Comparison {
    uid: Uid,
    fields: Digest,
    /// They were as we would apply them.
    intact: bool,
}

impl Memory {
    /// The same memory for the same object, an empty one for another of its name.
    pub(crate) fn belonging_to(&mut self, uid: &Uid) -> &mut Self {
        if self.uid.as_ref() != Some(uid) {
            *self = Self { uid: Some(uid.clone()), ..Self::default() };
        }
        self
    }

    /// Takes down what its watch tells of the object, status aside. True if it has told just that before.
    pub(crate) fn hear(&mut self, object: &ObjectView, force_reconcile: Option<&str>) -> bool {
        let mut hash = DefaultHasher::new();
        (object, force_reconcile).hash(&mut hash);
        let told = Some(hash.finish());
        std::mem::replace(&mut self.heard, told) == told
    }

    pub(crate) fn compare(&mut self, uid: Uid, fields: Digest, intact: bool) {
        self.compared.retain(|known| known.uid != uid);
        if self.compared.len() >= MAX_COMPARED {
            self.compared.clear();
        }
        self.compared.push(Comparison { uid, fields, intact });
    }

    /// Our fields are as they were when they were last seen to be as we would apply them.
    pub(crate) fn is_intact(&self, uid: &Uid, fields: &Digest) -> bool {
        self.comparison(uid, fields).is_some_and(|known| known.intact)
    }

    /// Whether our fields, as they are, have been compared at all.
    pub(crate) fn is_proven(&self, uid: &Uid, fields: &Digest) -> bool {
        self.comparison(uid, fields).is_some()
    }

    fn comparison(&self, uid: &Uid, fields: &Digest) -> Option<&Comparison> {
        self.compared.iter().find(|known| known.uid == *uid && known.fields == *fields)
    }
}
