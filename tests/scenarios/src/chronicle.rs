//! What came and went while a scenario was played, seen by watch: how often each object was made and removed, and
//! whether there were ever two Machines for one `ScheduledMachine`.

use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, Kind, MACHINE};
use crate::world::World;
use five_spot_api::names::label;
use futures::{StreamExt as _, pin_mut};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// How often an object was made, and how often it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Made.
    pub made: usize,
    /// Gone.
    pub removed: usize,
}

/// The chronicle of one scenario. It ends when it is dropped.
#[derive(Debug)]
pub struct Chronicle {
    book: Arc<Mutex<Book>>,
    watches: Vec<AbortHandle>,
}

#[derive(Debug, Default)]
struct Book {
    /// By kind and name, then by UID: the machine's owner.
    alive: BTreeMap<(&'static str, String), BTreeMap<String, Option<String>>>,
    counts: BTreeMap<(&'static str, String), Count>,
    violations: Vec<String>,
}

impl Chronicle {
    /// Begins to write down what happens in a world.
    pub fn begin(world: &dyn World) -> Self {
        let book = Arc::new(Mutex::new(Book::default()));
        let watches = [MACHINE, BOOTSTRAP, INFRASTRUCTURE]
            .map(|kind| {
                let (api, book) = (world.api(kind), book.clone());
                let events = watcher(api, watcher::Config::default()).default_backoff();
                tokio::spawn(async move {
                    pin_mut!(events);
                    let mut listed = BTreeSet::new();
                    while let Some(event) = events.next().await {
                        // A watch that fails is begun again, with a new list.
                        let Ok(event) = event else { continue };
                        lock(&book).note(kind, event, &mut listed);
                    }
                })
                .abort_handle()
            })
            .to_vec();
        Self { book, watches }
    }

    /// How often each object came and went, by `Kind name`.
    pub fn counts(&self) -> BTreeMap<String, Count> {
        let book = lock(&self.book);
        book.counts.iter().map(|((kind, name), count)| (format!("{kind} {name}"), *count)).collect()
    }

    /// What must never be, and was.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.book).violations.clone()
    }
}

impl Drop for Chronicle {
    fn drop(&mut self) {
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

impl Book {
    fn note(&mut self, kind: Kind, event: Event<DynamicObject>, listed: &mut BTreeSet<String>) {
        match event {
            Event::Apply(object) => self.seen(kind, &object),
            Event::Delete(object) => self.gone(kind, &object.name_any(), &uid(&object)),
            Event::Init => listed.clear(),
            Event::InitApply(object) => {
                listed.insert(uid(&object));
                self.seen(kind, &object);
            }
            Event::InitDone => {
                let of_kind = self.alive.iter().filter(|((other, _), _)| *other == kind.kind);
                let known = of_kind
                    .flat_map(|((_, name), lives)| lives.keys().map(|uid| (name.clone(), uid.clone())));
                let missing: Vec<(String, String)> = known.filter(|(_, uid)| !listed.contains(uid)).collect();
                for (name, uid) in missing {
                    self.gone(kind, &name, &uid);
                }
            }
        }
    }

    fn seen(&mut self, kind: Kind, object: &DynamicObject) {
        let (key, owner) = ((kind.kind, object.name_any()), owner(object));
        let lives = self.alive.entry(key.clone()).or_default();
        if lives.insert(uid(object), owner.clone()).is_none() {
            self.counts.entry(key).or_default().made += 1;
            self.check_doubles(kind, owner);
        }
    }

    fn gone(&mut self, kind: Kind, name: &str, uid: &str) {
        let key = (kind.kind, name.to_owned());
        if self.alive.get_mut(&key).is_some_and(|lives| lives.remove(uid).is_some()) {
            self.counts.entry(key).or_default().removed += 1;
        }
    }

    fn check_doubles(&mut self, kind: Kind, owner: Option<String>) {
        let Some(owner) = owner else { return };
        let of_kind = self.alive.iter().filter(|((other, _), _)| *other == kind.kind);
        let lives: Vec<String> = of_kind
            .flat_map(|((_, name), lives)| lives.iter().map(move |(uid, owner)| (name, uid, owner)))
            .filter(|(_, _, other)| other.as_deref() == Some(owner.as_str()))
            .map(|(name, uid, _)| format!("{name} ({uid})"))
            .collect();
        if lives.len() > 1 {
            self.violations.push(format!(
                "several objects of kind {} at a time for {owner}: {}",
                kind.kind,
                lives.join(", ")
            ));
        }
    }
}

/// The `ScheduledMachine` that an object was made for.
fn owner(object: &DynamicObject) -> Option<String> {
    object.labels().get(label::SCHEDULED_MACHINE).cloned()
}

fn uid(object: &DynamicObject) -> String {
    object.uid().unwrap_or_default()
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn machine(name: &str, uid: &str) -> DynamicObject {
        let labels = json!({label::SCHEDULED_MACHINE: "desk"});
        let metadata = json!({"name": name, "uid": uid, "labels": labels});
        serde_json::from_value(json!({"metadata": metadata})).expect("a Machine")
    }

    #[test]
    fn two_machines_at_a_time_are_noticed_and_one_after_the_other_is_fine() {
        let (mut book, mut listed) = (Book::default(), BTreeSet::new());
        let mut note = |event| book.note(MACHINE, event, &mut listed);
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Delete(machine("desk-machine", "1")));
        note(Event::Apply(machine("desk-machine", "2")));
        assert_eq!(book.violations, Vec::<String>::new());
        let count = book.counts[&("Machine", "desk-machine".to_owned())];
        assert_eq!(count, Count { made: 2, removed: 1 });
        book.note(MACHINE, Event::Apply(machine("another", "3")), &mut listed);
        assert_eq!(book.violations.len(), 1);
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let (mut book, mut listed) = (Book::default(), BTreeSet::new());
        let mut note = |event| book.note(MACHINE, event, &mut listed);
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Init);
        note(Event::InitDone);
        let count = book.counts[&("Machine", "desk-machine".to_owned())];
        assert_eq!(count, Count { made: 1, removed: 1 });
    }
}
