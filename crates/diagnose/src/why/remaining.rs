//! Objects that remain somewhere: in a namespace, or of a CRD. There may be thousands, so that those that look alike are
//! examined by a few examples.

use super::facts::Listed;
use super::live::Live;
use super::walk::Walk;
use super::words;
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// The number of objects of one kind that are read.
pub(super) const LIMIT: u32 = 50;

/// The number of objects that look alike that are examined.
const EXAMPLES: usize = 3;

/// The time in which everything that remains should have been deleted: the deletion of 10,000 objects takes a minute or two.
pub(super) const DELETED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The place where objects remain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'f> {
    /// The namespace or CRD, which is being deleted.
    pub(super) whole: Live<'f>,
    /// Its step.
    pub(super) step: usize,
    /// The relation of an object to it.
    pub(super) relation: &'static str,
    /// The component that deletes the objects.
    pub(super) deleter: &'static str,
}

/// The properties by which objects look alike. Pods of different nodes have different fates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Signature<'f> {
    finalizers: Vec<&'f str>,
    node: &'f str,
}

/// Examines the objects of one kind that remain.
pub(super) fn examine<'f>(walk: &mut Walk<'f>, place: Place<'f>, listed: &'f Listed) {
    let (deleting, kept): (Vec<_>, Vec<_>) =
        listed.items.iter().map(Live).partition(|item| item.is_deleting());
    let mut alike: BTreeMap<Signature<'f>, Vec<Live<'f>>> = BTreeMap::new();
    for item in deleting {
        let signature = Signature { finalizers: item.finalizers(), node: item.text("/spec/nodeName") };
        alike.entry(signature).or_default().push(item);
    }
    for items in alike.values() {
        for item in items.iter().take(EXAMPLES) {
            walk.visit(*item, place.relation);
        }
        let further = items.len().saturating_sub(EXAMPLES);
        if let (Some(first), true) = (items.first(), further > 0) {
            let objects = words::count(further as u64, "more object");
            let kind = first.text("/kind");
            walk.note(
                place.step,
                words::quoted(&format!("{objects} of kind {kind} in the same state as {}", first.name())),
            );
        }
    }
    if let Some(first) = kept.first() {
        not_deleted_yet(walk, place, *first, kept.len() as u64 + listed.more);
    }
}

/// Objects whose deletion has not been requested, although everything should be deleted.
fn not_deleted_yet<'f>(walk: &mut Walk<'f>, place: Place<'f>, first: Live<'f>, count: u64) {
    let objects = words::count(count, "object");
    let cause = format!("{} has not deleted {objects} of kind {} yet", place.deleter, first.text("/kind"));
    let evidence = vec![words::quoted(&format!("{} has no deletion timestamp", first.id().to_ref()))];
    if walk.overdue(place.whole) < DELETED_WITHIN {
        walk.waiting(&first.id(), cause, evidence);
    } else {
        let fix = super::answer::CauseFix::safe_if(
            walk.kubectl.on("delete", &first.id()),
            "deletes an object that should have been deleted already; an error message of the API server \
             says what prevents it",
        );
        walk.blocked(&first.id(), cause, evidence, vec![fix]);
    }
}
