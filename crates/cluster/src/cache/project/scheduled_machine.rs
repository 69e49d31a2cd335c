//! The projection of a `ScheduledMachine`: parsed once, when it is read.

use super::status::StatusText;
use super::{capi_paused, pause};
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::names::{FINALIZER, annotation};
use five_spot_api::{ObjectRef, ScheduledMachineSpec, ScheduledMachineStatus, WorkloadCluster};
use five_spot_core::world::{DeletionView, NodeName, ObjectView, Uid};
use five_spot_core::{FieldError, Fingerprint, InvalidSpec, ProviderKind, ValidSpec, check_name, text};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use std::sync::Arc;

/// The finalizer that `--cascade=orphan` puts onto an object.
const ORPHAN: &str = "orphan";

/// Bytes of the finalizers of others that are kept. An object has a few, and may have a megabyte of them.
const MOST_FINALIZERS: usize = 4 << 10;

/// The facts that are kept of a `ScheduledMachine`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectFacts {
    pub(crate) view: ObjectView,
    pub(crate) spec: Result<Arc<ValidSpec>, Arc<InvalidSpec>>,
    pub(crate) status: StatusText,
    pub(crate) record: Record,
    /// The field manager that wrote the spec last.
    pub(crate) spec_by: Option<String>,
    /// Any new value causes a reconcile. The value itself does not matter, and may have a quarter of a megabyte.
    pub(crate) force_reconcile: Option<Fingerprint>,
    /// The finalizers of others; `None` if there are too many to keep.
    pub(crate) other_finalizers: Option<Box<[String]>>,
}

impl ObjectFacts {
    /// All finalizers of the object, if they are kept. Ours is the last.
    pub(crate) fn finalizers(&self) -> Option<Vec<String>> {
        let ours = self.view.has_finalizer.then(|| FINALIZER.to_owned());
        Some(self.other_finalizers.as_ref()?.iter().cloned().chain(ours).collect())
    }
}

/// The parts of the status that are needed too often to parse the whole status each time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// The cluster of the Node. Boxed, because most objects have none most of the time.
    pub(crate) workload_cluster: Option<Box<WorkloadCluster>>,
    /// The kinds of the provider's objects, where they are other ones than the spec names now.
    pub(crate) former_kinds: Box<[ProviderKind]>,
    /// The Node, also once its Machine is gone.
    pub(crate) node: Option<NodeName>,
    /// True if the owner of the machine wants it back and does not have it yet.
    pub(crate) is_reclaimed: bool,
    /// True if the object waits for a physical machine that another one has.
    pub(crate) waits_for_machine: bool,
    /// The removal that was not planned, if there is one: when it began, or nothing while it is held.
    #[expect(
        clippy::option_option,
        reason = "no unplanned removal, one that is held, and one that has begun"
    )]
    pub(crate) unplanned_removal: Option<Option<Timestamp>>,
}

impl Record {
    fn new(status: &ScheduledMachineStatus, spec: Option<&ValidSpec>) -> Self {
        let now: Vec<&ProviderKind> =
            spec.map(|spec| [&spec.bootstrap, &spec.infrastructure]).into_iter().flatten().collect();
        let recorded = [&status.bootstrap_ref, &status.infrastructure_ref].into_iter().flatten().map(kind_of);
        Self {
            workload_cluster: status.workload_cluster.clone().map(Box::new),
            former_kinds: recorded.filter(|kind| !now.contains(&kind)).collect(),
            node: status.node_ref.as_ref().map(|node| NodeName::from(node.name.as_str())),
            unplanned_removal: status
                .unplanned_removal
                .as_ref()
                .map(|removal| removal.begun_at.as_ref().map(|time| time.0)),
            is_reclaimed: status.reclaims.iter().any(|record| record.finished_at.is_none()),
            waits_for_machine: status.conditions.iter().any(|condition| {
                condition.type_ == ConditionType::Ready.as_str()
                    && condition.reason == Reason::MachineInUse.as_str()
            }),
        }
    }
}

/// The kind that a reference names.
pub(crate) fn kind_of(reference: &ObjectRef) -> ProviderKind {
    ProviderKind { api_version: reference.api_version.clone(), kind: reference.kind.clone() }
}

pub(crate) fn scheduled_machine(object: &DynamicObject) -> ObjectFacts {
    let finalizers = object.finalizers();
    let deletion = object.metadata.deletion_timestamp.as_ref().map(|since| DeletionView {
        since: since.0,
        orphan: finalizers.iter().any(|finalizer| finalizer == ORPHAN),
    });
    let name = object.name_any();
    let (spec, status) = (understand(&name, object), status(object));
    ObjectFacts {
        status: StatusText::new(&status),
        record: Record::new(&status, spec.as_ref().ok()),
        spec: spec.map(Arc::new).map_err(Arc::new),
        spec_by: last_writer(object),
        force_reconcile: object.annotations().get(annotation::FORCE_RECONCILE).map(Fingerprint::of),
        other_finalizers: other_finalizers(finalizers),
        view: ObjectView {
            namespace: object.namespace().unwrap_or_default(),
            name,
            uid: Uid::from(object.uid().unwrap_or_default()),
            created_at: object.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            generation: object.metadata.generation.unwrap_or_default(),
            deletion,
            has_finalizer: finalizers.iter().any(|finalizer| finalizer == FINALIZER),
            capi_paused: capi_paused(object),
            paused: pause(object),
            resume: object.annotations().get(annotation::RESUME).and_then(|time| time.trim().parse().ok()),
        },
    }
}

fn other_finalizers(finalizers: &[String]) -> Option<Box<[String]>> {
    let bytes: usize = finalizers.iter().map(|name| size_of::<String>() + name.len()).sum();
    let others = finalizers.iter().filter(|name| *name != FINALIZER).cloned();
    (bytes <= MOST_FINALIZERS).then(|| others.collect())
}

/// A status that cannot be read was written by another program; ours replaces it.
fn status(object: &DynamicObject) -> ScheduledMachineStatus {
    serde_json::from_value(object.data["status"].clone()).unwrap_or_default()
}

/// The manager of fields whose latest write touched the spec.
fn last_writer(object: &DynamicObject) -> Option<String> {
    let writes = object.managed_fields().iter().filter(|entry| {
        let of_spec = entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some());
        of_spec && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    writes.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager.clone()
}

/// The spec as it was written.
pub(crate) fn read_spec(object: &DynamicObject) -> Result<ScheduledMachineSpec, serde_json::Error> {
    serde_json::from_value(object.data["spec"].clone())
}

fn understand(name: &str, object: &DynamicObject) -> Result<ValidSpec, InvalidSpec> {
    let spec = match read_spec(object) {
        Ok(spec) => spec,
        // Only with a CRD that is older or newer than this program.
        Err(error) => {
            let message = text::bounded(&error.to_string(), text::MAX_MESSAGE).into_owned();
            let errors = vec![FieldError::new("spec", message)];
            return Err(InvalidSpec::unreadable(&object.data["spec"], errors));
        }
    };
    let named = check_name(name);
    match (ValidSpec::parse(&spec), named) {
        (Ok(valid), Ok(())) => Ok(valid),
        (Ok(_), Err(error)) => Err(InvalidSpec::new(&spec, vec![error])),
        (Err(errors), Ok(())) => Err(InvalidSpec::new(&spec, errors)),
        (Err(mut errors), Err(error)) => {
            errors.insert(0, error);
            Err(InvalidSpec::new(&spec, errors))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn facts(metadata: &Value, spec: &Value) -> ObjectFacts {
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": metadata, "spec": spec,
        });
        scheduled_machine(&serde_json::from_value(object).expect("an object"))
    }

    #[test]
    fn of_a_long_annotation_only_a_fingerprint_is_kept() {
        let with = |value: &str| {
            let annotations = json!({annotation::FORCE_RECONCILE: value});
            facts(&json!({"name": "a", "annotations": annotations}), &json!({}))
        };
        let long = "x".repeat(200_000);
        assert_ne!(with(&long), with(&format!("{long}y")));
        assert_eq!(with(&long), with(&long));
        assert!(!format!("{:?}", with(&long)).contains("xxxx"));
    }

    #[test]
    fn finalizers_are_kept_unless_there_are_too_many() {
        let with = |others: usize| {
            let others = (0..others).map(|number| format!("example.org/finalizer-{number}"));
            let finalizers: Vec<String> = std::iter::once(FINALIZER.to_owned()).chain(others).collect();
            facts(&json!({"name": "a", "finalizers": finalizers}), &json!({}))
        };
        let few = with(1).finalizers().expect("they are kept");
        assert_eq!(few, ["example.org/finalizer-0", FINALIZER]);
        let many = with(10_000);
        assert_eq!(many.finalizers(), None);
        assert!(many.view.has_finalizer);
    }

    #[test]
    fn a_spec_that_cannot_be_read_is_not_repeated_at_length() {
        let errors = facts(&json!({"name": "a"}), &json!({"schedule": "x".repeat(200_000)})).spec;
        let errors = errors.expect_err("a schedule is no text").errors.clone();
        assert!(errors.iter().all(|error| error.message.len() <= text::MAX_MESSAGE), "{}", errors.len());
    }
}
