//! The facts that a walk needs, and the requests for them.

use crate::object::ReportedObject;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// One object of any API. The version is left to discovery.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; absent for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// An object in a namespace.
    pub fn namespaced(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::cluster_scoped(group, kind, name) }
    }

    /// A cluster-scoped object.
    pub fn cluster_scoped(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), namespace: None, name: name.to_owned() }
    }

    /// The same for answers.
    pub fn to_ref(&self) -> ReportedObject {
        ReportedObject { kind: self.kind.clone(), namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// A kind of objects, in the words that led to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceId {
    /// By kind, as owner references name it.
    Kind {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// By plural, as the conditions of namespaces and CRDs name it.
    Plural {
        /// The API group.
        group: String,
        /// The plural.
        plural: String,
    },
}

impl ResourceId {
    /// By kind.
    pub fn kind(group: &str, kind: &str) -> Self {
        Self::Kind { group: group.to_owned(), kind: kind.to_owned() }
    }

    /// By plural.
    pub fn plural(group: &str, plural: &str) -> Self {
        Self::Plural { group: group.to_owned(), plural: plural.to_owned() }
    }
}

/// The objects of a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    /// All of them.
    All,
    /// Those that match a field selector.
    Fields(String),
    /// Those that match a label selector.
    Labels(String),
}

/// The owner in an owner reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The UID, if it is known. Otherwise kind and name have to match.
    pub uid: Option<String>,
}

/// A fact that the walk needs to continue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// One object.
    Object(ObjectId),
    /// The first objects of a kind.
    List {
        /// The kind.
        resource: ResourceId,
        /// One namespace; all of them if absent.
        namespace: Option<String>,
        /// A selector.
        filter: Filter,
        /// The number of objects that are enough.
        limit: u32,
    },
    /// The objects of any kind whose owner references name an owner. Their metadata is enough.
    Dependents {
        /// The owner.
        owner: Owner,
        /// The namespace of the owner. Dependents of a cluster-scoped owner can be in any namespace.
        namespace: Option<String>,
    },
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The object, with `apiVersion` and `kind`.
    Object(Value),
    /// The API server said that there is no such object.
    Absent,
    /// The objects of a list, each with `apiVersion` and `kind`.
    List(Listed),
    /// The request was not answered.
    Unreadable(Unreadable),
}

/// The first objects of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// The objects.
    pub items: Vec<Value>,
    /// The number of further ones, as far as the API server says.
    pub more: u64,
    /// Parts that could not be read, in words.
    pub unread: Vec<String>,
}

/// The reason for which something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The caller lacks a permission, which the text names: `list pods in namespace shop`.
    Forbidden(String),
    /// No API server serves the kind.
    NotServed(String),
    /// Anything else.
    Failed(String),
}

/// Everything that has been read so far.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time, by the clock of the API server if possible.
    pub now: Timestamp,
    known: BTreeMap<Need, Fact>,
}

impl Facts {
    /// Nothing is known yet but the time.
    pub fn at(now: Timestamp) -> Self {
        Self { now, known: BTreeMap::new() }
    }

    /// Adds a fact.
    pub fn insert(&mut self, need: Need, fact: Fact) {
        self.known.insert(need, fact);
    }

    /// The fact, if it has been read.
    pub fn get(&self, need: &Need) -> Option<&Fact> {
        self.known.get(need)
    }

    /// The number of facts.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// True if nothing has been read yet.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Everything that could not be read, in words, sorted.
    pub fn unreadable(&self) -> Vec<&Unreadable> {
        let unreadable = self.known.values().filter_map(|fact| match fact {
            Fact::Unreadable(reason) => Some(reason),
            Fact::Object(_) | Fact::Absent | Fact::List(_) => None,
        });
        unreadable.collect()
    }
}

impl Extend<(Need, Fact)> for Facts {
    fn extend<T: IntoIterator<Item = (Need, Fact)>>(&mut self, facts: T) {
        self.known.extend(facts);
    }
}

impl Unreadable {
    /// In a sentence of evidence.
    pub fn in_words(&self) -> String {
        match self {
            Self::Forbidden(permission) => format!("you may not {permission}"),
            Self::NotServed(kind) => format!("{kind} is not served by this cluster"),
            Self::Failed(error) => error.clone(),
        }
    }
}
