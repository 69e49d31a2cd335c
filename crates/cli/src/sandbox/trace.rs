//! The trace: everything that happened in a run, in order. All output and all checks are computed from it
//! alone.

use five_spot_api::{Phase, ReclaimRecord};
use five_spot_core::ValidSpec;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A `ScheduledMachine` by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.namespace, self.name))
    }
}

/// Something that happened, with its time.
#[derive(Clone, Debug)]
pub struct Entry {
    pub time: Timestamp,
    pub fact: Fact,
}

#[derive(Clone, Debug)]
pub enum Fact {
    /// A `ScheduledMachine` was created or changed; `None` if it was deleted.
    Object(Key, Option<Snapshot>),
    /// Its CAPI Machine was created, is being deleted, or was deleted.
    Machine(Key, Presence),
    /// The controller published an event.
    Event(Event),
    /// The controller sent a write request.
    Write(Write),
    /// A user did something, described in a sentence.
    UserAction(String),
}

/// The state of a `ScheduledMachine` at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The valid spec; `None` if it is invalid.
    pub spec: Option<Arc<ValidSpec>>,
    pub kill_switch: bool,
    pub deleted_at: Option<Timestamp>,
    pub phase: Option<Phase>,
    pub message: String,
    /// Its Node is Ready.
    pub is_ready: bool,
    /// Pods block the drain of its Node.
    pub is_held: bool,
    /// Its owner has requested it back, and it has not been returned yet.
    pub is_reclaimed: bool,
    /// The object is paused.
    pub is_paused: bool,
    /// The reclaims in its status, newest first.
    pub reclaims: Vec<ReclaimRecord>,
}

/// The state of a CAPI Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    There,
    Terminating,
    Gone,
}

/// An event of `events.k8s.io`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub key: Key,
    pub reason: String,
    /// The type is `Warning`; `Normal` otherwise.
    pub is_warning: bool,
    pub note: String,
}

/// A write request and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub verb: &'static str,
    pub resource: String,
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// Absent if the request was not answered.
    pub status: Option<u16>,
}

impl Write {
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A change of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition<'a> {
    pub key: &'a Key,
    /// Absent for a new object.
    pub from: Option<Phase>,
    /// Absent for a deleted object.
    pub to: Option<Phase>,
}

/// The trace of a run, complete or so far.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub entries: Vec<Entry>,
}

impl Trace {
    /// Every object that existed during the run.
    pub fn keys(&self) -> BTreeSet<&Key> {
        let keys = self.entries.iter().filter_map(|entry| match &entry.fact {
            Fact::Object(key, _) => Some(key),
            Fact::Machine(..) | Fact::Event(_) | Fact::Write(_) | Fact::UserAction(_) => None,
        });
        keys.collect()
    }

    /// The states of one object, one entry per change.
    pub fn snapshots<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = (Timestamp, Option<&'a Snapshot>)> {
        self.entries.iter().filter_map(move |entry| match &entry.fact {
            Fact::Object(of, snapshot) if of == key => Some((entry.time, snapshot.as_ref())),
            Fact::Object(..) | Fact::Machine(..) | Fact::Event(_) | Fact::Write(_) | Fact::UserAction(_) => {
                None
            }
        })
    }

    /// The presence of an object's Machine over time.
    pub fn machine<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = (Timestamp, Presence)> {
        self.entries.iter().filter_map(move |entry| match &entry.fact {
            Fact::Machine(of, presence) if of == key => Some((entry.time, *presence)),
            Fact::Object(..) | Fact::Machine(..) | Fact::Event(_) | Fact::Write(_) | Fact::UserAction(_) => {
                None
            }
        })
    }

    /// The writes of the controller, including failed ones.
    pub fn writes(&self) -> impl Iterator<Item = (Timestamp, &Write)> {
        self.entries.iter().filter_map(|entry| match &entry.fact {
            Fact::Write(write) => Some((entry.time, write)),
            Fact::Object(..) | Fact::Machine(..) | Fact::Event(_) | Fact::UserAction(_) => None,
        })
    }

    /// Every entry, with the transition that it caused, if any.
    pub fn with_transitions(&self) -> impl Iterator<Item = (&Entry, Option<Transition<'_>>)> {
        let mut transitions = Transitions::default();
        self.entries.iter().map(move |entry| (entry, transitions.next(&entry.fact)))
    }
}

/// Derives transitions from consecutive changes.
#[derive(Debug, Default)]
pub struct Transitions {
    phases: BTreeMap<Key, Phase>,
}

impl Transitions {
    pub fn next<'a>(&mut self, fact: &'a Fact) -> Option<Transition<'a>> {
        let Fact::Object(key, snapshot) = fact else {
            return None;
        };
        let to = snapshot.as_ref().and_then(|snapshot| snapshot.phase);
        let from = match to {
            Some(phase) => self.phases.insert(key.clone(), phase),
            None => self.phases.remove(key),
        };
        (from != to).then_some(Transition { key, from, to })
    }
}
