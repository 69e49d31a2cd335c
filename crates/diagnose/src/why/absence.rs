//! Objects that do not exist: did they ever?

use super::facts::{Fact, Filter, Need, ObjectId, Owner, ResourceId};
use super::live::Live;
use super::walk::Walk;
use super::words;

/// The number of events that are read.
const EVENTS: u32 = 20;

/// The number of events and dependents that are shown.
const SHOWN: usize = 5;

/// Looks for events about an object and for dependents that name it as their owner. Returns true if there are any.
pub(super) fn find_traces(walk: &mut Walk<'_>, id: &ObjectId) -> bool {
    walk.step(id, "the object in question", vec!["it does not exist".to_owned()]);
    let uid = events(walk, id);
    let dependents = dependents(walk, id, uid.clone().flatten());
    uid.is_some() || dependents
}

/// Notes the events about the object. Returns its UID, if there are events and they tell it.
#[expect(clippy::option_option, reason = "no events, events without a UID, and events with one")]
fn events(walk: &mut Walk<'_>, id: &ObjectId) -> Option<Option<String>> {
    let namespace = id.namespace.as_deref().unwrap_or("default");
    let filter = Filter::Fields(format!("involvedObject.kind={},involvedObject.name={}", id.kind, id.name));
    let listed = walk.list(ResourceId::kind("", "Event"), Some(namespace), filter, EVENTS)?.ok()?;
    let group = |event: &Live<'_>| super::live::group_of(event.text("/involvedObject/apiVersion")).to_owned();
    let mine: Vec<Live<'_>> =
        listed.items.iter().map(Live).filter(|event| group(event) == id.group).collect();
    let last = mine.last()?;
    for event in mine.iter().rev().take(SHOWN) {
        let text = format!("event {}: {}", event.text("/reason"), event.text("/message"));
        walk.note(0, words::quoted(&text));
    }
    Some(Some(last.text("/involvedObject/uid").to_owned()).filter(|uid| !uid.is_empty()))
}

fn dependents(walk: &mut Walk<'_>, id: &ObjectId, uid: Option<String>) -> bool {
    if id.kind == "Namespace" && id.group.is_empty() {
        // Nothing is left of a namespace that is gone.
        return false;
    }
    let owner = Owner { kind: id.kind.clone(), name: id.name.clone(), uid };
    let Some(Fact::List(listed)) = walk.ask(Need::Dependents { owner, namespace: id.namespace.clone() })
    else {
        return false;
    };
    for dependent in listed.items.iter().map(Live).take(SHOWN) {
        let evidence = vec!["it names the object as its owner".to_owned()];
        walk.step(&dependent.id(), "a dependent that has outlived its owner", evidence);
    }
    if listed.items.len() > SHOWN {
        walk.note(0, words::count((listed.items.len() - SHOWN) as u64, "more dependent"));
    }
    !listed.items.is_empty()
}
