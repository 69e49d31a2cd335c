//! The garbage collector: deletes dependents with their last owner, orphans them, or deletes them before
//! their owner.

use crate::kinds::Resource;
use crate::object;
use crate::state::State;
use crate::store::{Place, Touched};
use crate::verbs::{DeleteRequest, Propagation, delete_object};
use serde_json::Value;
use std::sync::Arc;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

pub(super) fn follow_up(state: &mut State, touched: &Touched) {
    // A real collector ignores events, which expire.
    if touched.place.store.as_str() == "events" {
        return;
    }
    if touched.removed {
        for dependent in state.store.dependents(&touched.uid) {
            attend(state, &dependent);
        }
        recheck_waiting_owners(state, touched);
        return;
    }
    let Some(value) = state.store.at(&touched.place).cloned() else {
        return;
    };
    if object::is_terminating(&value) {
        if has_finalizer(&value, ORPHAN) {
            orphan_dependents(state, &touched.place, &value);
        } else if has_finalizer(&value, FOREGROUND) {
            delete_dependents(state, &touched.place, &value);
        }
    }
    attend(state, &touched.place);
}

fn has_finalizer(value: &Value, finalizer: &str) -> bool {
    object::finalizers(value).any(|one| one == finalizer)
}

/// Checks the owners of one object. Without any owner left, the object is deleted; otherwise references to
/// missing owners are removed.
fn attend(state: &mut State, place: &Place) {
    let Some(value) = state.store.at(place).cloned().filter(|_| place.store.as_str() != "events") else {
        return;
    };
    let references = object::owner_references(&value);
    let is_deleting_dependents = object::is_terminating(&value) && has_finalizer(&value, FOREGROUND);
    if references.is_empty() || (object::is_terminating(&value) && !is_deleting_dependents) {
        return;
    }
    let (mut solid, mut gone, mut waiting) = (Vec::new(), 0, 0);
    for reference in references {
        match owner_of(state, &value, reference) {
            None => gone += 1,
            Some(owner) if is_waited_for(&owner, reference) => waiting += 1,
            Some(_) => solid.push(reference.clone()),
        }
    }
    if !solid.is_empty() {
        if gone + waiting > 0 {
            keep_references(state, place, &value, solid);
        }
        return;
    }
    if is_deleting_dependents {
        return;
    }
    let has_blocking_dependents = waiting > 0 && !blocking_dependents(state, &value).is_empty();
    let propagation = if has_blocking_dependents || has_finalizer(&value, FOREGROUND) {
        Propagation::Foreground
    } else if has_finalizer(&value, ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    delete_at(state, place, &value, propagation);
}

/// The owner that a reference refers to: it has the same UID and a scope in which it can own this object.
fn owner_of(state: &State, dependent: &Value, reference: &Value) -> Option<Arc<Value>> {
    let owner = state.store.find_uid(reference["uid"].as_str()?)?;
    let namespace = object::namespace(owner);
    let is_reachable = namespace.is_empty() || namespace == object::namespace(dependent);
    let is_named = owner["kind"] == reference["kind"] && owner["metadata"]["name"] == reference["name"];
    (is_reachable && is_named).then(|| owner.clone())
}

fn is_waited_for(owner: &Value, reference: &Value) -> bool {
    object::is_terminating(owner)
        && has_finalizer(owner, FOREGROUND)
        && reference["blockOwnerDeletion"] == true
}

fn keep_references(state: &mut State, place: &Place, value: &Value, references: Vec<Value>) {
    let mut changed = value.clone();
    object::set_meta(&mut changed, "ownerReferences", references);
    write(state, place, value, changed);
}

fn delete_at(state: &mut State, place: &Place, value: &Value, propagation: Propagation) {
    let Some(resource) = state.kinds.by_store(&place.store) else {
        return;
    };
    let request = DeleteRequest {
        propagation: Some(propagation),
        precondition_uid: Some(object::uid(value).to_owned()),
        ..DeleteRequest::default()
    };
    // The object existed under the same lock, so a refusal means that it is already being deleted.
    let _ = delete_object(state, &resource, &place.key.namespace, &place.key.name, &request);
}

fn orphan_dependents(state: &mut State, place: &Place, owner: &Value) {
    let uid = object::uid(owner);
    for dependent in state.store.dependents(uid) {
        let Some(value) = state.store.at(&dependent).cloned() else {
            continue;
        };
        let kept: Vec<Value> =
            object::owner_references(&value).iter().filter(|one| one["uid"] != uid).cloned().collect();
        let mut changed = (*value).clone();
        if kept.is_empty() {
            object::remove_meta(&mut changed, "ownerReferences");
        } else {
            object::set_meta(&mut changed, "ownerReferences", kept);
        }
        write(state, &dependent, &value, changed);
    }
    release(state, place, owner, ORPHAN);
}

/// Foreground deletion: dependents are deleted first, and the owner waits for those that block it.
fn delete_dependents(state: &mut State, place: &Place, owner: &Value) {
    for dependent in state.store.dependents(object::uid(owner)) {
        attend(state, &dependent);
    }
    if blocking_dependents(state, owner).is_empty() {
        release(state, place, owner, FOREGROUND);
    }
}

fn blocking_dependents(state: &State, owner: &Value) -> Vec<Place> {
    let uid = object::uid(owner);
    let mut dependents = state.store.dependents(uid);
    dependents.retain(|place| {
        state.store.at(place).is_some_and(|value| {
            object::owner_references(value)
                .iter()
                .any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == true)
        })
    });
    dependents
}

/// The owner of a deleted dependent may have waited only for it.
fn recheck_waiting_owners(state: &mut State, touched: &Touched) {
    for owner in &touched.owners {
        let Some(value) = state.store.find_uid(owner).cloned() else {
            continue;
        };
        if object::is_terminating(&value)
            && has_finalizer(&value, FOREGROUND)
            && blocking_dependents(state, &value).is_empty()
        {
            let Some(resource) = state.kinds.by_kind(
                value["apiVersion"].as_str().unwrap_or_default(),
                value["kind"].as_str().unwrap_or_default(),
            ) else {
                continue;
            };
            release(state, &place_of(&resource, &value), &value, FOREGROUND);
        }
    }
}

fn place_of(resource: &Resource, value: &Value) -> Place {
    Place { store: resource.store.clone(), key: crate::store::Key::of(value) }
}

/// Removes a finalizer of the collector. Without finalizers, the object is deleted.
fn release(state: &mut State, place: &Place, value: &Value, finalizer: &str) {
    let Some(resource) = state.kinds.by_store(&place.store) else {
        return;
    };
    let kept: Vec<String> =
        object::finalizers(value).filter(|one| *one != finalizer).map(str::to_owned).collect();
    let mut changed = value.clone();
    object::set_finalizers(&mut changed, &kept);
    super::write_as_controller(state, &resource, value, changed);
}

fn write(state: &mut State, place: &Place, old: &Value, changed: Value) {
    if let Some(resource) = state.kinds.by_store(&place.store) {
        super::write_as_controller(state, &resource, old, changed);
    }
}
