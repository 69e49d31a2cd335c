//! The trace: everything that happened, in order. All output and all checks are computed from it alone.

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

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    pub time: Timestamp,
    pub fact: Fact,
}

#[derive(Clone, Debug)]
pub enum Fact {
    /// A `ScheduledMachine` is new or has changed; nothing is left of one that is gone.
    Object(Key, Option<Snapshot>),
    /// Its CAPI Machine has come, is on its way out, or has gone.
    Machine(Key, Presence),
    /// The controller has announced something.
    Event(Event),
    /// The controller has asked for a change.
    Write(Write),
    /// A person did something, in a sentence.
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
    /// Its node is in the cluster and Ready.
    pub is_ready: bool,
    /// Pods may not leave its node yet.
    pub is_held: bool,
    /// Its owner wants it back, and has not got it yet.
    pub is_reclaimed: bool,
    /// Somebody holds the controller back.
    pub is_paused: bool,
    /// The reclaims in its status, newest first.
    pub reclaims: Vec<ReclaimRecord>,
}

/// The presence of a CAPI Machine.
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
    /// A person should look at it; `Normal` otherwise.
    pub is_warning: bool,
    pub note: String,
}

/// A request that was to change something, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub verb: &'static str,
    pub resource: String,
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    /// Absent if there was no answer.
    pub status: Option<u16>,
}

impl Write {
    pub fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// From one phase to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition<'a> {
    pub key: &'a Key,
    /// Absent for an object that has just come.
    pub from: Option<Phase>,
    /// Absent for an object that is gone.
    pub to: Option<Phase>,
}

/// A run, or as much of it as is over.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub entries: Vec<Entry>,
}

impl Trace {
    /// Every object that there was.
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

    /// The presence of the Machine of one object over time.
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

    /// Every entry with the transition that it means, if it means one.
    pub fn told(&self) -> impl Iterator<Item = (&Entry, Option<Transition<'_>>)> {
        let mut transitions = Transitions::default();
        self.entries.iter().map(move |entry| (entry, transitions.next(&entry.fact)))
    }
}

/// Finds the transitions among the changes, one after the other.
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
