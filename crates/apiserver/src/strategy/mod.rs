//! Preparation of objects before they are stored, by kind: empty structures, defaults, admission,
//! validation, immutability.

mod crd;
mod defaults;
mod events;
mod metadata;
mod names;
mod pod;
mod validate;
mod workloads;

pub(crate) use crd::accept as accept_crd;
pub(crate) use events::{core_to_events, events_to_core};
pub(crate) use metadata::validate_metadata;
pub(crate) use pod::merge_texts;

use crate::error::Fault;
use crate::kinds::{BuiltinKind, Resource};
use crate::object;
use serde_json::{Value, json};

/// The context in which an object is admitted.
pub(crate) struct Admission<'a> {
    pub ids: &'a mut crate::ids::Ids,
    /// The labels that a pod gets from its Node.
    pub topology: Value,
}

/// Returns true if `metadata.generation` of the kind counts changes of its spec.
pub(crate) fn has_generation(resource: &Resource) -> bool {
    match resource.builtin() {
        None => true,
        Some(kind) => matches!(
            kind,
            BuiltinKind::CustomResourceDefinition
                | BuiltinKind::DaemonSet
                | BuiltinKind::Deployment
                | BuiltinKind::Pod
                | BuiltinKind::PodDisruptionBudget
                | BuiltinKind::ReplicaSet
        ),
    }
}

/// An empty object of this kind, as the server sees it before a create.
pub(crate) fn zero(resource: &Resource) -> Value {
    let mut zero = defaults::zero(resource);
    zero["apiVersion"] = resource.api_version().into();
    zero["kind"] = resource.kind.clone().into();
    zero
}

/// Adds the structures that the type always has and the defaults of the kind.
pub(crate) fn apply_defaults(resource: &Resource, value: &mut Value) {
    match resource.custom() {
        Some(custom) => {
            if let Some(validator) = &custom.validator {
                validator.apply_defaults(value);
            }
        }
        None => defaults::apply(resource, value),
    }
}

/// Applies the server's default admission plugins to a new object.
pub(crate) fn admit_create(resource: &Resource, value: &mut Value, admission: &mut Admission<'_>) {
    match resource.builtin() {
        Some(BuiltinKind::Pod) => pod::admit(value, admission),
        Some(BuiltinKind::Node) => workloads::admit_node(value),
        Some(BuiltinKind::Namespace) => workloads::admit_namespace(value),
        Some(BuiltinKind::CustomResourceDefinition) => crd::prepare_create(value),
        Some(BuiltinKind::PodDisruptionBudget) => workloads::prepare_budget(value),
        _ => {}
    }
}

/// Prepares an updated object for validation.
pub(crate) fn prepare_update(resource: &Resource, value: &mut Value, old: &Value) {
    if resource.is(BuiltinKind::Namespace) {
        object::take_field_from(value, old, "spec");
    }
}

/// The reasons why an object is invalid; empty if it is valid.
pub(crate) fn validate(resource: &Resource, value: &Value, old: Option<&Value>) -> Vec<Fault> {
    if let Some(custom) = resource.custom() {
        let Some(validator) = &custom.validator else {
            return vec![Fault::invalid("", &json!(null), "the schema of this kind could not be compiled")];
        };
        return validator.validate(value, old).into_iter().map(Fault::from).collect();
    }
    validate::validate(resource, value, old)
}
