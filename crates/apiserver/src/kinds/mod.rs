//! The served kinds: the built-in ones from a table, and one for every established CRD.

mod builtin;
mod custom;

pub(crate) use builtin::BuiltinKind;
pub(crate) use custom::CustomKind;

use crate::error::Subject;
use crate::types::{TypeRef, definition_for, definitions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name under which the objects of a resource are stored. The versions of a resource share it, and so do
/// the two event groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StoreId(Arc<str>);

impl StoreId {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self(if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One served version of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    pub store: StoreId,
    pub definition: Definition,
}

/// The definition of a resource: built in or a CRD.
#[derive(Clone, Debug)]
pub(crate) enum Definition {
    Builtin(BuiltinKind),
    Custom(Arc<CustomKind>),
}

impl Resource {
    /// `v1` or `group/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The subject of an error about a request.
    pub(crate) fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: &self.group, kind: &self.plural, name }
    }

    /// The subject of an error about an object.
    pub(crate) fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        // The server validates events of both groups as the older kind.
        let group = if self.is(BuiltinKind::Event) { "" } else { &self.group };
        Subject { group, kind: &self.kind, name }
    }

    pub(crate) fn custom(&self) -> Option<&CustomKind> {
        match &self.definition {
            Definition::Custom(custom) => Some(custom),
            Definition::Builtin(_) => None,
        }
    }

    pub(crate) fn builtin(&self) -> Option<BuiltinKind> {
        match &self.definition {
            Definition::Custom(_) => None,
            Definition::Builtin(kind) => Some(*kind),
        }
    }

    pub(crate) fn is(&self, kind: BuiltinKind) -> bool {
        self.builtin() == Some(kind)
    }

    /// The type of this resource's objects.
    pub(crate) fn type_ref(&self) -> TypeRef<'_> {
        match &self.definition {
            Definition::Custom(custom) => TypeRef::new(&custom.schema),
            Definition::Builtin(_) => definitions()
                .get(&definition_for(&self.group, &self.version, &self.kind))
                .map_or(TypeRef::unknown(), TypeRef::new),
        }
    }
}

/// Every resource that is served, by group, version and plural.
#[derive(Debug)]
pub(crate) struct Registry {
    served: BTreeMap<(String, String, String), Arc<Resource>>,
}

impl Registry {
    /// Creates a table with only the built-in kinds.
    pub(crate) fn builtin() -> Self {
        let served = builtin::resources()
            .into_iter()
            .map(|resource| {
                let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
                (key, Arc::new(resource))
            })
            .collect();
        Self { served }
    }

    /// The resource of a URL.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.served.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The resource of an object, by its `apiVersion` and `kind`. Any served version of the group is
    /// accepted.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let of_kind = || self.served.values().filter(|one| one.group == group && one.kind == kind);
        of_kind().find(|one| one.version == version).or_else(|| of_kind().next()).cloned()
    }

    /// Any served version of the resource whose objects are stored under `store`.
    pub(crate) fn by_store(&self, store: &StoreId) -> Option<Arc<Resource>> {
        self.served.values().find(|one| &one.store == store).cloned()
    }

    /// One resource per store, for namespace deletion and garbage collection.
    pub(crate) fn stored(&self) -> Vec<Arc<Resource>> {
        let mut by_store = BTreeMap::new();
        for resource in self.served.values() {
            by_store.entry(resource.store.clone()).or_insert_with(|| resource.clone());
        }
        by_store.into_values().collect()
    }

    /// All served resources, ordered by group, version and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.served.values()
    }

    /// Serves the resources of an established CRD, replacing those of its earlier version.
    pub(crate) fn serve_crd(&mut self, crd: &Value) {
        self.withdraw_crd(crd);
        for resource in custom::resources(crd) {
            let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
            self.served.insert(key, Arc::new(resource));
        }
    }

    /// Stops serving the resources of a CRD.
    pub(crate) fn withdraw_crd(&mut self, crd: &Value) {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        self.served.retain(|(served_group, _, served_plural), resource| {
            resource.custom().is_none() || served_group != group || served_plural != plural
        });
    }

    /// Returns true if a group belongs to Kubernetes itself, even if this server does not serve it.
    pub(crate) fn is_kubernetes_group(group: &str) -> bool {
        const UNQUALIFIED: [&str; 6] = ["", "apps", "batch", "autoscaling", "policy", "extensions"];
        // The Kubernetes project's own custom resources are in `x-k8s.io`.
        UNQUALIFIED.contains(&group) || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"))
    }
}
