//! The standings of the objects of one physical machine: everything about an object that the decisions about the others depend
//! on, and the objects to which a change of it matters.
//!
//! A standing is compared with the one that was noted last, however often its object is read or written in between. So a change
//! that affects no other object wakes none, and a change that does is noticed whichever watch or answer shows it.

use crate::transport::key::ObjectKey;
use five_spot_core::MachineIdentity;
use five_spot_core::claim::{ObjectName, Waiter, first};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The standing of an object among those of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The machine that its spec names.
    pub(crate) machine: MachineIdentity,
    /// Its place in the order of those that wait, if it waits.
    pub(crate) turn: Option<Turn>,
    /// True if its Machine or its infrastructure object exists.
    pub(crate) has_machine: bool,
}

impl Standing {
    /// True if a decision about another object may depend on it.
    const fn concerns_others(&self) -> bool {
        self.turn.is_some() || self.has_machine
    }
}

/// The place of an object in the order of those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// `spec.priority`.
    pub(crate) priority: u8,
    /// Its creation timestamp.
    pub(crate) created_at: Timestamp,
}

impl Turn {
    /// The object as one that waits.
    pub(crate) fn waiter(self, object: &ObjectKey) -> Waiter {
        Waiter { object: object_name(object), priority: self.priority, created_at: self.created_at }
    }
}

/// The name of an object, as decisions use it.
pub(crate) fn object_name(key: &ObjectKey) -> ObjectName {
    ObjectName { namespace: (*key.namespace).to_owned(), name: (*key.name).to_owned() }
}

/// The objects of a machine to which a change of a standing matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Affected {
    /// The machine.
    pub(crate) machine: MachineIdentity,
    /// Those that wait for it. They cannot act while another object holds the claim.
    pub(crate) waiting: Vec<ObjectKey>,
    /// Those that have it, and report if another one has it too.
    pub(crate) lent: Vec<ObjectKey>,
}

/// The standings of all objects.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    /// The objects of each machine. Entries are hints: the spec may have changed.
    by_machine: BTreeSet<(MachineIdentity, ObjectKey)>,
    /// The standings that concern others, as they were noted last.
    noted: BTreeMap<ObjectKey, Standing>,
}

impl Standings {
    /// The objects that may have this machine.
    pub(crate) fn objects(&self, machine: MachineIdentity) -> impl Iterator<Item = &ObjectKey> {
        let first = (machine, ObjectKey::new("", ""));
        let of_machine = self.by_machine.range(first..).take_while(move |(found, _)| *found == machine);
        of_machine.map(|(_, object)| object)
    }

    /// Notes the standing of an object; nothing if it is gone or names no machine. Returns the objects to which the change
    /// matters.
    pub(crate) fn note(&mut self, key: &ObjectKey, standing: Option<Standing>) -> Vec<Affected> {
        if let Some(Standing { machine, .. }) = standing {
            let entry = (machine, key.clone());
            if !self.by_machine.contains(&entry) {
                self.by_machine.insert(entry);
            }
        }
        let standing = standing.filter(Standing::concerns_others);
        let former = self.noted.get(key).copied();
        if former == standing {
            return Vec::new();
        }
        let machines: BTreeSet<MachineIdentity> =
            former.iter().chain(&standing).map(|standing| standing.machine).collect();
        let before: Vec<Order> = machines.iter().map(|machine| self.order(*machine)).collect();
        match standing {
            Some(standing) => self.noted.insert(key.clone(), standing),
            None => self.noted.remove(key),
        };
        let waited = former.filter(|former| former.turn.is_some()).map(|former| former.machine);
        let affected = machines.into_iter().zip(before);
        affected.map(|(machine, before)| self.affected(machine, &before, key, waited)).collect()
    }

    /// Removes the hints that are out of date. `is_current` compares one with the object.
    pub(crate) fn retain(&mut self, is_current: impl Fn(MachineIdentity, &ObjectKey) -> bool) {
        let noted = &self.noted;
        self.by_machine.retain(|(machine, object)| {
            // The change of an object that is in the store already may not have been noted yet.
            noted.get(object).is_some_and(|standing| standing.machine == *machine)
                || is_current(*machine, object)
        });
    }

    fn of_machine(&self, machine: MachineIdentity) -> impl Iterator<Item = (&ObjectKey, &Standing)> {
        let noted = self.objects(machine).filter_map(|object| self.noted.get_key_value(object));
        noted.filter(move |(_, standing)| standing.machine == machine)
    }

    fn order(&self, machine: MachineIdentity) -> Order {
        let waiter = |(object, standing): (&ObjectKey, &Standing)| Some(standing.turn?.waiter(object));
        let waiters: Vec<Waiter> = self.of_machine(machine).filter_map(waiter).collect();
        let mut lent = self.of_machine(machine).filter(|(_, standing)| standing.has_machine);
        let mut next = || lent.next().map(|(object, _)| object.clone());
        Order { first: first(&waiters).map(|waiter| waiter.object.clone()), lent: [next(), next()] }
    }

    /// The objects whose decision may be another one than before.
    fn affected(
        &self,
        machine: MachineIdentity,
        before: &Order,
        changed: &ObjectKey,
        waited: Option<MachineIdentity>,
    ) -> Affected {
        let now = self.order(machine);
        let mut affected = Affected { machine, waiting: Vec::new(), lent: Vec::new() };
        for (object, standing) in self.of_machine(machine) {
            let other_is_lent = before.lent_besides(object) != now.lent_besides(object);
            if standing.has_machine && other_is_lent && object != changed {
                affected.lent.push(object.clone());
                continue;
            }
            // It was not known that this object waits when what it waits for changed last.
            let has_begun = object == changed && waited != Some(machine);
            let is_next = now.is_first(object) && !before.is_first(object);
            if standing.turn.is_some() && (other_is_lent || has_begun || is_next) {
                affected.waiting.push(object.clone());
            }
        }
        affected
    }
}

/// The facts about a machine that decide whose turn it is.
#[derive(Debug)]
struct Order {
    /// The waiter that is to have it first.
    first: Option<ObjectName>,
    /// The first two objects that have a Machine or an infrastructure object.
    lent: [Option<ObjectKey>; 2],
}

impl Order {
    fn is_first(&self, object: &ObjectKey) -> bool {
        self.first
            .as_ref()
            .is_some_and(|first| *first.namespace == *object.namespace && *first.name == *object.name)
    }

    /// The first object besides this one that is lent the machine.
    fn lent_besides(&self, object: &ObjectKey) -> Option<&ObjectKey> {
        self.lent.iter().flatten().find(|lent| *lent != object)
    }
}

#[cfg(test)]
mod tests;
