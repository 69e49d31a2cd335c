//! The table of built-in kinds.

use super::{Definition, Resource, StoreId};

/// A kind that is served without a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinKind {
    ConfigMap,
    CoreEvent,
    CustomResourceDefinition,
    DaemonSet,
    Deployment,
    Event,
    Lease,
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    Secret,
    ServiceAccount,
}

struct Row {
    builtin: BuiltinKind,
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    has_status: bool,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
}

const fn row(builtin: BuiltinKind, group: &'static str, kind: &'static str, plural: &'static str) -> Row {
    Row {
        builtin,
        group,
        kind,
        plural,
        namespaced: true,
        has_status: false,
        short_names: &[],
        categories: &[],
    }
}

const TABLE: &[Row] = &[
    Row { short_names: &["cm"], ..row(BuiltinKind::ConfigMap, "", "ConfigMap", "configmaps") },
    Row { short_names: &["ev"], ..row(BuiltinKind::CoreEvent, "", "Event", "events") },
    Row {
        namespaced: false,
        has_status: true,
        short_names: &["ns"],
        ..row(BuiltinKind::Namespace, "", "Namespace", "namespaces")
    },
    Row {
        namespaced: false,
        has_status: true,
        short_names: &["no"],
        ..row(BuiltinKind::Node, "", "Node", "nodes")
    },
    Row {
        has_status: true,
        short_names: &["po"],
        categories: &["all"],
        ..row(BuiltinKind::Pod, "", "Pod", "pods")
    },
    row(BuiltinKind::Secret, "", "Secret", "secrets"),
    Row { short_names: &["sa"], ..row(BuiltinKind::ServiceAccount, "", "ServiceAccount", "serviceaccounts") },
    Row {
        namespaced: false,
        has_status: true,
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        ..row(
            BuiltinKind::CustomResourceDefinition,
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
    },
    Row {
        has_status: true,
        short_names: &["ds"],
        categories: &["all"],
        ..row(BuiltinKind::DaemonSet, "apps", "DaemonSet", "daemonsets")
    },
    Row {
        has_status: true,
        short_names: &["deploy"],
        categories: &["all"],
        ..row(BuiltinKind::Deployment, "apps", "Deployment", "deployments")
    },
    Row {
        has_status: true,
        short_names: &["rs"],
        categories: &["all"],
        ..row(BuiltinKind::ReplicaSet, "apps", "ReplicaSet", "replicasets")
    },
    row(BuiltinKind::Lease, "coordination.k8s.io", "Lease", "leases"),
    Row { short_names: &["ev"], ..row(BuiltinKind::Event, "events.k8s.io", "Event", "events") },
    Row {
        has_status: true,
        short_names: &["pdb"],
        ..row(BuiltinKind::PodDisruptionBudget, "policy", "PodDisruptionBudget", "poddisruptionbudgets")
    },
];

pub(super) fn resources() -> Vec<Resource> {
    TABLE.iter().map(Row::to_resource).collect()
}

impl Row {
    fn to_resource(&self) -> Resource {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Resource {
            group: self.group.to_owned(),
            version: "v1".to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            has_status: self.has_status,
            // Both event groups are views of the same objects.
            store: if self.builtin == BuiltinKind::Event {
                StoreId::new("", self.plural)
            } else {
                StoreId::new(self.group, self.plural)
            },
            definition: Definition::Builtin(self.builtin),
        }
    }
}
