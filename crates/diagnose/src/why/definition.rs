//! CRDs that are being deleted: the API server deletes their instances first.

use super::facts::{Filter, ResourceId};
use super::live::Live;
use super::remaining::{self, LIMIT, Place};
use super::walk::Walk;
use super::words;

/// Examines the instances of a CRD. Returns true if they explain why it is still there.
pub(super) fn instances<'f>(walk: &mut Walk<'f>, definition: Live<'f>, step: usize) -> bool {
    if let Some(condition) = definition.condition("Terminating") {
        walk.note(step, words::condition(&condition));
    }
    let (group, plural) = (definition.text("/spec/group"), definition.text("/spec/names/plural"));
    let place =
        Place { whole: definition, step, relation: "an instance that remains", deleter: "the API server" };
    match walk.list(ResourceId::plural(group, plural), None, Filter::All, LIMIT) {
        None => true,
        Some(Ok(listed)) => {
            let count = listed.more + listed.items.len() as u64;
            walk.note(step, format!("remaining: {}", words::count(count, "instance")));
            remaining::examine(walk, place, listed);
            !listed.items.is_empty()
        }
        Some(Err(reason)) => {
            walk.note_unread(step, "its instances", reason);
            false
        }
    }
}
