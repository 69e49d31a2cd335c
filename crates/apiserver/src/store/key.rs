//! The key of an object among those of its resource.

use crate::object;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// Namespace (empty for cluster-scoped kinds) and name, in etcd's order of `namespace/name`, which is the
/// order of lists and their pages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn of(value: &Value) -> Self {
        Self::new(object::namespace(value), object::name(value))
    }

    /// Parses the output of `Display`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.split_once('/').map(|(namespace, name)| Self::new(namespace, name))
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.namespace.bytes().chain(std::iter::once(b'/')).chain(self.name.bytes())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
