//! Claims on physical machines: at most one object holds a machine at a time. A claim is a Lease; this module has the facts
//! about it, and the order of those that wait for it. The rules are in `lifecycle/claim.rs`.

use crate::identity::MachineIdentity;
use crate::world::ResourceVersion;
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::fmt;

/// The time for which a free machine is kept for the object that is to have it first. That object may be one that nobody
/// works on at the moment, and must not keep the others waiting.
pub const KEPT_FOR_FIRST: SignedDuration = SignedDuration::from_secs(60);

/// Everything about the physical machine of an object that concerns other objects too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineClaims {
    /// The claim on the machine that the spec names.
    pub current: Claim,
    /// Claims that this object still holds on other machines, which its spec has named before.
    pub former: Vec<HeldClaim>,
    /// Another object with the same machine whose Machine or infrastructure object exists.
    pub also_lent_by: Option<ObjectName>,
}

impl Default for MachineClaims {
    fn default() -> Self {
        Self { current: Claim::NotNeeded, former: Vec::new(), also_lent_by: None }
    }
}

/// The claim on one physical machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The spec does not say which physical machine it is.
    NotNeeded,
    /// The controller may not use Leases: nothing protects the machine.
    Unprotected,
    /// The Leases have not been read yet.
    Unknown,
    /// No object holds the machine.
    Free {
        /// The machine.
        machine: MachineIdentity,
        /// The other objects that wait for it.
        waiters: Vec<Waiter>,
        /// The time since which it has been free, as far as this controller has seen.
        since: Timestamp,
    },
    /// This object holds it.
    Held(HeldClaim),
    /// An object that does not exist any more, and of whose Machine nothing is left, has not released it.
    Abandoned(HeldClaim),
    /// Another object holds it.
    Taken {
        /// That object.
        holder: ObjectName,
    },
}

/// A claim that exists, as a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldClaim {
    /// The machine.
    pub machine: MachineIdentity,
    /// The version of the Lease.
    pub version: ResourceVersion,
    /// True if the Lease names the UID of this object, and not that of an earlier object of its name.
    pub is_current: bool,
}

/// Namespace and name of a `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that waits for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The object.
    pub object: ObjectName,
    /// `spec.priority`.
    pub priority: u8,
    /// Its creation timestamp.
    pub created_at: Timestamp,
}

impl Waiter {
    /// The order by age: the oldest first, and by name among those of one second.
    fn age(&self) -> (Timestamp, &ObjectName) {
        (self.created_at, &self.object)
    }
}

/// Returns the object that is to have the machine first: of the namespace with the oldest waiter, the one with the highest
/// priority, and the oldest among equals. So a priority counts inside its own namespace and nowhere else.
pub fn first<'a>(waiters: impl IntoIterator<Item = &'a Waiter> + Clone) -> Option<&'a Waiter> {
    let oldest = waiters.clone().into_iter().min_by_key(|waiter| waiter.age())?;
    let in_namespace =
        waiters.into_iter().filter(|waiter| waiter.object.namespace == oldest.object.namespace);
    in_namespace.min_by_key(|waiter| (Reverse(waiter.priority), waiter.age()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiter(namespace: &str, name: &str, priority: u8, second: i64) -> Waiter {
        Waiter {
            object: ObjectName { namespace: namespace.to_owned(), name: name.to_owned() },
            priority,
            created_at: Timestamp::from_second(second).expect("a time"),
        }
    }

    #[track_caller]
    fn check(waiters: &[Waiter], expected: &str) {
        let first = first(waiters).map(|waiter| waiter.object.to_string());
        assert_eq!(first.as_deref(), Some(expected));
    }

    #[test]
    fn priority_then_age_decides_in_one_namespace() {
        check(&[waiter("a", "old", 50, 1), waiter("a", "urgent", 51, 2)], "a/urgent");
        check(&[waiter("a", "young", 50, 2), waiter("a", "old", 50, 1)], "a/old");
        check(&[waiter("a", "y", 50, 1), waiter("a", "x", 50, 1)], "a/x");
    }

    #[test]
    fn age_alone_decides_between_namespaces() {
        check(&[waiter("a", "old", 0, 1), waiter("b", "urgent", 100, 2)], "a/old");
        // The namespace of the oldest waiter is next, and chooses by priority.
        check(
            &[waiter("a", "old", 0, 1), waiter("b", "between", 50, 2), waiter("a", "urgent", 100, 3)],
            "a/urgent",
        );
        assert_eq!(first(&[]), None);
    }

    fn waiters() -> impl Strategy<Value = Vec<Waiter>> {
        let some = prop::collection::btree_map(("[abc]", "[a-f]"), (0..=100_u8, 0..4_i64), 1..8);
        some.prop_map(|all| {
            all.into_iter()
                .map(|((namespace, name), (priority, second))| waiter(&namespace, &name, priority, second))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_order_of_the_list_does_not_matter(mut waiters in waiters()) {
            let before = first(&waiters).cloned();
            waiters.reverse();
            prop_assert_eq!(first(&waiters).cloned(), before);
        }

        #[test]
        fn no_priority_takes_a_machine_from_another_namespace(waiters in waiters(), priorities in prop::collection::vec(0..=100_u8, 8)) {
            let namespace = |waiters: &[Waiter]| first(waiters).map(|waiter| waiter.object.namespace.clone());
            let others: Vec<Waiter> =
                waiters.iter().zip(priorities).map(|(waiter, priority)| Waiter { priority, ..waiter.clone() }).collect();
            prop_assert_eq!(namespace(&waiters), namespace(&others));
        }

        #[test]
        fn everyone_is_served_when_those_before_have_been(mut waiters in waiters()) {
            let mut served = 0;
            let all = waiters.len();
            while let Some(next) = first(&waiters).cloned() {
                waiters.retain(|waiter| *waiter != next);
                served += 1;
            }
            prop_assert_eq!(served, all);
        }
    }
}
