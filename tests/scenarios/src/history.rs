//! The objects created and removed during a scenario, seen by watch: how often each was created and removed, and
//! whether there were ever two Machines for one `ScheduledMachine`.

use crate::environment::Environment;
use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, MACHINE, ObjectKind};
use five_spot_api::names::label;
use futures::{StreamExt as _, pin_mut};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The number of times an object was created and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCount {
    /// Made.
    pub made: usize,
    /// Gone.
    pub removed: usize,
}

/// The history of one scenario. It ends when it is dropped.
#[derive(Debug)]
pub struct ObjectHistory {
    records: Arc<Mutex<Records>>,
    watches: Vec<AbortHandle>,
}

#[derive(Debug, Default)]
struct Records {
    /// By kind and name, then by UID: the machine's owner.
    alive: BTreeMap<(&'static str, String), BTreeMap<String, Option<String>>>,
    counts: BTreeMap<(&'static str, String), ObjectCount>,
    violations: Vec<String>,
    /// The addresses of the infrastructure objects that exist, by UID.
    addresses: BTreeMap<String, String>,
    /// Addresses that two objects had at the same time.
    doubled: Vec<String>,
}

impl ObjectHistory {
    /// Starts to record what happens in an environment.
    pub fn begin(env: &dyn Environment) -> Self {
        let records = Arc::new(Mutex::new(Records::default()));
        let watches = [MACHINE, BOOTSTRAP, INFRASTRUCTURE]
            .map(|kind| {
                let (api, records) = (env.api(kind), records.clone());
                let events = watcher(api, watcher::Config::default()).default_backoff();
                tokio::spawn(async move {
                    pin_mut!(events);
                    let mut listed = BTreeSet::new();
                    while let Some(event) = events.next().await {
                        // A watch that fails is restarted with a new list.
                        let Ok(event) = event else { continue };
                        lock(&records).note(kind, event, &mut listed);
                    }
                })
                .abort_handle()
            })
            .to_vec();
        Self { records, watches }
    }

    /// The number of times each object was created and removed, by `Kind name`.
    pub fn counts(&self) -> BTreeMap<String, ObjectCount> {
        let records = lock(&self.records);
        records.counts.iter().map(|((kind, name), count)| (format!("{kind} {name}"), *count)).collect()
    }

    /// Physical machines that were lent twice at a time.
    pub fn doubled(&self) -> Vec<String> {
        lock(&self.records).doubled.clone()
    }

    /// Violated invariants.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.records).violations.clone()
    }
}

impl Drop for ObjectHistory {
    fn drop(&mut self) {
        self.watches.iter().for_each(AbortHandle::abort);
    }
}

impl Records {
    fn note(&mut self, kind: ObjectKind, event: Event<DynamicObject>, listed: &mut BTreeSet<String>) {
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

    fn seen(&mut self, kind: ObjectKind, object: &DynamicObject) {
        let (key, owner) = ((kind.kind, object.name_any()), owner(object));
        self.note_address(kind, object);
        let lives = self.alive.entry(key.clone()).or_default();
        if lives.insert(uid(object), owner.clone()).is_none() {
            self.counts.entry(key).or_default().made += 1;
            self.check_doubles(kind, owner);
        }
    }

    /// Records the address of an infrastructure object of ours, which no other may have while it exists.
    fn note_address(&mut self, kind: ObjectKind, object: &DynamicObject) {
        let address = object.data["spec"]["address"].as_str().filter(|_| kind == INFRASTRUCTURE);
        let (Some(address), Some(_)) = (address, owner(object)) else { return };
        let is_other = |(other, of): (&String, &String)| *other != uid(object) && of == address;
        if self.addresses.iter().any(is_other) {
            self.doubled.push(format!("{address} has {} and another", object.name_any()));
        }
        self.addresses.insert(uid(object), address.to_owned());
    }

    fn gone(&mut self, kind: ObjectKind, name: &str, uid: &str) {
        self.addresses.remove(uid);
        let key = (kind.kind, name.to_owned());
        if self.alive.get_mut(&key).is_some_and(|lives| lives.remove(uid).is_some()) {
            self.counts.entry(key).or_default().removed += 1;
        }
    }

    fn check_doubles(&mut self, kind: ObjectKind, owner: Option<String>) {
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

fn lock(records: &Mutex<Records>) -> MutexGuard<'_, Records> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn two_machines_at_the_same_time_are_a_violation() {
        let (mut records, mut listed) = (Records::default(), BTreeSet::new());
        let mut note = |event| records.note(MACHINE, event, &mut listed);
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Delete(machine("desk-machine", "1")));
        note(Event::Apply(machine("desk-machine", "2")));
        assert_eq!(records.violations, Vec::<String>::new());
        let count = records.counts[&("Machine", "desk-machine".to_owned())];
        assert_eq!(count, ObjectCount { made: 2, removed: 1 });
        records.note(MACHINE, Event::Apply(machine("another", "3")), &mut listed);
        assert_eq!(records.violations.len(), 1);
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let (mut records, mut listed) = (Records::default(), BTreeSet::new());
        let mut note = |event| records.note(MACHINE, event, &mut listed);
        note(Event::Apply(machine("desk-machine", "1")));
        note(Event::Init);
        note(Event::InitDone);
        let count = records.counts[&("Machine", "desk-machine".to_owned())];
        assert_eq!(count, ObjectCount { made: 1, removed: 1 });
    }
}
