//! The index of owners and dependents for the garbage collector.

use super::Key;
use crate::kinds::StoreId;
use crate::object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The location of a stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub store: StoreId,
    pub key: Key,
}

#[derive(Debug, Default)]
pub(super) struct OwnerIndex {
    places: BTreeMap<String, Place>,
    dependents: BTreeMap<String, BTreeSet<Place>>,
}

impl OwnerIndex {
    /// Updates the index with a change of one object.
    pub(super) fn update(&mut self, place: &Place, before: Option<&Value>, after: Option<&Value>) {
        if let Some(before) = before {
            for owner in owner_uids(before) {
                if let Some(set) = self.dependents.get_mut(owner) {
                    set.remove(place);
                    if set.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
            if after.is_none() {
                self.places.remove(object::uid(before));
            }
        }
        if let Some(after) = after {
            for owner in owner_uids(after) {
                self.dependents.entry(owner.to_owned()).or_default().insert(place.clone());
            }
            if before.is_none() {
                self.places.insert(object::uid(after).to_owned(), place.clone());
            }
        }
    }

    pub(super) fn place_of(&self, uid: &str) -> Option<&Place> {
        self.places.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

fn owner_uids(value: &Value) -> impl Iterator<Item = &str> {
    object::owner_references(value).iter().filter_map(|owner| owner["uid"].as_str())
}
