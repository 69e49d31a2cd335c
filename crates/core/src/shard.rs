//! Shards: several instances of the controller share the objects by rendezvous hashing on `namespace/name`.
//!
//! Every instance computes a score for each pair of an object and an instance, and the instance with the highest score owns
//! the object. With one more instance an object moves only if the new instance has the highest score, so that about
//! 1/(n+1) of the objects move, all of them to the new instance.

use std::fmt;
use std::num::NonZeroU32;

/// One of several instances that share the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The number of instances. First, so that shards are ordered by it.
    count: NonZeroU32,
    /// The number of this instance, from 0 on; below `count`.
    id: u32,
}

impl Shard {
    /// The only instance.
    pub const ONLY: Self = Self { count: NonZeroU32::MIN, id: 0 };

    /// The instance `id` of `count`. `None` if there is no such instance.
    pub fn new(id: u32, count: u32) -> Option<Self> {
        NonZeroU32::new(count).filter(|count| id < count.get()).map(|count| Self { count, id })
    }

    /// The number of this instance, from 0 on.
    pub const fn id(self) -> u32 {
        self.id
    }

    /// The number of instances.
    pub const fn count(self) -> u32 {
        self.count.get()
    }

    /// Returns true if this instance owns an object.
    pub fn owns(self, namespace: &str, name: &str) -> bool {
        owner(namespace, name, self.count) == self.id
    }

    /// Returns true if another instance, started with another count, can own an object that this instance owns too, and
    /// takes precedence. The instance with the higher count does; it conflicts only if its number does not exist under the
    /// lower count, because all other objects have the same owner under both.
    pub const fn is_outranked_by(self, other: Self) -> bool {
        self.count.get() < other.count.get() && other.id >= self.count.get()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.count)
    }
}

impl std::str::FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (id, count) = text.split_once('/').ok_or(ShardError)?;
        let shard = Self::new(id.parse().map_err(|_| ShardError)?, count.parse().map_err(|_| ShardError)?);
        shard.filter(|shard| shard.to_string() == text).ok_or(ShardError)
    }
}

/// The error of a text that names no shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardError;

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it must be the number of an instance and the count of instances, as in 0/3")
    }
}

impl std::error::Error for ShardError {}

/// Returns the number of the instance that owns an object. The result is the same on every machine and in every version of
/// this program: two versions run side by side during an upgrade.
pub fn owner(namespace: &str, name: &str, count: NonZeroU32) -> u32 {
    let key = fnv1a(namespace.bytes().chain([b'/']).chain(name.bytes()));
    (0..count.get()).max_by_key(|id| (score(key, *id), *id)).unwrap_or(0)
}

/// The score of an instance for an object: the finalizer of `SplitMix64`, in which every bit of the input affects every bit of
/// the output.
const fn score(key: u64, id: u32) -> u64 {
    let mut z = key ^ (id as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).expect("not zero")
    }

    #[test]
    fn owners_are_the_same_in_every_version() {
        let owners = |name: &str| [1, 2, 3, 5, 16].map(|n| owner("desks", name, count(n)));
        assert_eq!(owners("desk-1"), [0, 1, 1, 1, 13]);
        assert_eq!(owners("desk-2"), [0, 0, 0, 0, 15]);
        assert_eq!(owners("desk-3"), [0, 1, 1, 3, 10]);
    }

    #[test]
    fn objects_are_balanced() {
        for instances in 1..=9 {
            let mut owned = vec![0_u32; instances as usize];
            for number in 0..10_000 {
                owned[owner("desks", &format!("desk-{number}"), count(instances)) as usize] += 1;
            }
            let fair = 10_000 / instances;
            for share in owned {
                // Ten standard deviations would be less than a tenth of a share here; a modulo of names is far worse.
                assert!(share.abs_diff(fair) < fair / 10 + 1, "{share} of {fair} with {instances}");
            }
        }
    }

    #[test]
    fn one_more_instance_takes_its_share_and_moves_nothing_else() {
        for instances in 1..9 {
            let moved = (0..10_000)
                .filter(|number| {
                    let name = format!("desk-{number}");
                    let (before, after) = (
                        owner("desks", &name, count(instances)),
                        owner("desks", &name, count(instances + 1)),
                    );
                    assert!(after == before || after == instances, "{name} moves from {before} to {after}");
                    after != before
                })
                .count();
            let fair = 10_000 / (instances as usize + 1);
            assert!(moved.abs_diff(fair) < fair / 10, "{moved} of {fair} move from {instances}");
        }
    }

    #[test]
    fn names_that_only_differ_in_the_slash_differ() {
        assert_ne!(fnv1a("a/bc".bytes()), fnv1a("ab/c".bytes()));
    }

    #[test]
    fn a_shard_is_written_as_number_and_count() {
        assert_eq!("2/3".parse(), Ok(Shard::new(2, 3).expect("a shard")));
        assert_eq!(Shard::new(2, 3).expect("a shard").to_string(), "2/3");
        for text in ["", "3", "3/3", "0/0", "-1/2", "1/2/3", "01/2", "a/b", " 0/1"] {
            assert_eq!(text.parse::<Shard>(), Err(ShardError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn exactly_one_instance_owns_an_object(namespace in "[a-z0-9-]{1,20}", name in "[a-z0-9.-]{1,53}", n in 1_u32..20) {
            let owners = (0..n).filter(|id| Shard::new(*id, n).expect("in range").owns(&namespace, &name)).count();
            prop_assert_eq!(owners, 1);
        }

        /// Two instances of different counts own the same object only if the one outranks the other.
        #[test]
        fn conflicts_are_between_ranks(name in "[a-z0-9-]{1,53}", n in 1_u32..8, m in 1_u32..8) {
            let (one, other) = (owner("a", &name, count(n)), owner("a", &name, count(m)));
            let (one, other) = (Shard::new(one, n).expect("in range"), Shard::new(other, m).expect("in range"));
            if one.id() != other.id() {
                prop_assert!(one.is_outranked_by(other) || other.is_outranked_by(one));
            }
        }
    }
}
