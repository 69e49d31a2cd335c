//! Namespace and name of an object.

use kube::ResourceExt;
use kube::runtime::reflector::Lookup;
use std::fmt;
use std::sync::Arc;

/// Namespace and name. The namespace is empty for objects without one. Keys are kept in many places, so clones share the
/// text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The object of this name in this namespace.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object that was read.
    pub fn of<K: kube::Resource + Lookup>(object: &K) -> Self {
        Self::new(ResourceExt::namespace(object).unwrap_or_default(), object.name_any())
    }

    /// Another object in the same namespace.
    pub(crate) fn beside(&self, name: impl Into<Arc<str>>) -> Self {
        Self::new(self.namespace.clone(), name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
