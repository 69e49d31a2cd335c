//! One `ScheduledMachine`, and everything that was read about it.

use super::facts::{DoctorFacts, WorkloadFacts, WorkloadKey};
use super::finding::{Finding, Severity};
use super::id::FindingId;
use super::index::Index;
use super::json::{self, list, name, namespace, text, time};
use crate::object::ReportedObject;
use crate::shell::quoted;
use five_spot_api::{ScheduledMachineSpec, ScheduledMachineStatus, names};
use five_spot_core::{FieldError, ValidSpec};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// A `ScheduledMachine`.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// The object.
    pub object: Value,
    /// Its spec.
    pub spec: Result<ValidSpec, Vec<FieldError>>,
    /// Its status, as far as it can be read.
    pub status: ScheduledMachineStatus,
}

impl MachineFacts {
    /// Reads an object. A status that holds garbage is read field by field.
    pub fn new(object: Value) -> Self {
        let spec = serde_json::from_value::<ScheduledMachineSpec>(object["spec"].clone())
            .map_err(|error| vec![FieldError { field: "spec".to_owned(), message: error.to_string() }])
            .and_then(|spec| ValidSpec::parse(&spec));
        Self { spec, status: status_of(&object["status"]), object }
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        namespace(&self.object)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        name(&self.object)
    }

    /// The time of its deletion, if it is being deleted.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        time(&self.object, "/metadata/deletionTimestamp")
    }

    /// The workload cluster of its Node: the recorded one, or that of the spec.
    pub fn workload(&self) -> WorkloadKey {
        let by_spec = || {
            let chosen = text(&self.object, "/spec/kubeconfigSecretRef/name");
            let cluster = text(&self.object, "/spec/clusterName");
            if chosen.is_empty() { names::kubeconfig_secret(cluster) } else { chosen.to_owned() }
        };
        let secret = match &self.status.workload_cluster {
            Some(recorded) => recorded.secret_name.clone(),
            None => Some(by_spec()),
        };
        WorkloadKey { namespace: self.namespace().to_owned(), secret }
    }

    /// The patterns of its reclaim agent.
    pub fn commands(&self) -> Vec<&str> {
        list(&self.object, "/spec/killIfCommands").iter().filter_map(Value::as_str).collect()
    }

    /// True if the recorded boundary of its schedule passed so long ago that a working controller would have acted, or if it
    /// has been there for long without a status.
    pub fn is_neglected(&self, now: Timestamp) -> bool {
        let late = |at: Timestamp| now.duration_since(at) > LATE;
        let status = &self.status;
        if status.phase.is_none() {
            return time(&self.object, "/metadata/creationTimestamp").is_some_and(late);
        }
        [&status.next_activation, &status.next_cleanup].into_iter().flatten().any(|time| late(time.0))
    }
}

/// The time that a controller may take to act on a boundary: it is woken at the boundary itself.
const LATE: SignedDuration = SignedDuration::from_mins(3);

/// Reads a status. A field that cannot be read counts as absent.
fn status_of(value: &Value) -> ScheduledMachineStatus {
    if let Ok(status) = serde_json::from_value(value.clone()) {
        return status;
    }
    let mut readable = serde_json::Map::new();
    for (field, part) in value.as_object().into_iter().flatten() {
        let alone = Value::Object(serde_json::Map::from_iter([(field.clone(), part.clone())]));
        if serde_json::from_value::<ScheduledMachineStatus>(alone).is_ok() {
            readable.insert(field.clone(), part.clone());
        }
    }
    serde_json::from_value(Value::Object(readable)).unwrap_or_default()
}

/// A machine that is judged, and what belongs to it.
pub(super) struct Case<'a> {
    pub(super) facts: &'a DoctorFacts,
    pub(super) index: &'a Index<'a>,
    pub(super) machine: &'a MachineFacts,
    /// Its Machine of Cluster API.
    pub(super) capi: Option<&'a Value>,
    pub(super) workload: Option<&'a WorkloadFacts>,
    /// Its Node in the workload cluster.
    pub(super) node: Option<&'a Value>,
}

impl<'a> Case<'a> {
    pub(super) fn new(facts: &'a DoctorFacts, index: &'a Index<'a>, machine: &'a MachineFacts) -> Self {
        let capi = index.capi_machine(machine.namespace(), &names::machine(machine.name()));
        let workload = facts.workloads.get(&machine.workload());
        let recorded = machine.status.node_ref.as_ref().map(|node| node.name.as_str());
        let node = recorded
            .or_else(|| capi.map(|capi| text(capi, "/status/nodeRef/name")))
            .and_then(|node| workload?.nodes.as_ref()?.get(node));
        Self { facts, index, machine, capi, workload, node }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.facts.now
    }

    /// The full hour after a number of hours from now. It is part of commands, and `date` has other flags on other systems.
    pub(super) fn in_hours(&self, hours: i64) -> Timestamp {
        let full = self.now().as_second().div_euclid(3600).saturating_add(hours + 1);
        Timestamp::from_second(full.saturating_mul(3600)).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn object(&self) -> ReportedObject {
        ReportedObject::namespaced(names::KIND, self.machine.namespace(), self.machine.name())
    }

    pub(super) fn find(&self, id: FindingId, severity: Severity, title: impl Into<String>) -> Finding {
        Finding::new(id, severity, self.object(), title)
    }

    /// A recorded condition: status, reason, message, and the time of its last change.
    pub(super) fn condition(&self, kind: &str) -> Option<Recorded<'a>> {
        let found = self.machine.status.conditions.iter().find(|condition| condition.type_ == kind)?;
        Some(Recorded {
            kind: &found.type_,
            status: &found.status,
            reason: &found.reason,
            message: &found.message,
            since: found.last_transition_time.0,
        })
    }

    /// The reason of a condition, or nothing.
    pub(super) fn reason(&self, kind: &str) -> &'a str {
        self.condition(kind).map_or("", |condition| condition.reason)
    }

    /// `kubectl VERB scheduledmachine NAME -n NAMESPACE`.
    pub(super) fn kubectl(&self, verb: &str) -> String {
        format!("kubectl {verb} scheduledmachine {} -n {}", self.machine.name(), self.machine.namespace())
    }

    /// A merge patch of the object's spec.
    pub(super) fn patch(&self, spec: &Value) -> String {
        let patch = serde_json::json!({"spec": spec}).to_string();
        format!("{} --type=merge -p {}", self.kubectl("patch"), quoted(&patch))
    }

    /// The name of its Node, as far as it is known.
    pub(super) fn node_name(&self) -> &'a str {
        let recorded = self.machine.status.node_ref.as_ref().map(|node| node.name.as_str());
        recorded.or_else(|| self.node.map(name)).unwrap_or_default()
    }

    /// The Ready condition of its Node, and the time since when it is so.
    pub(super) fn node_ready(&self) -> Option<(bool, Option<Timestamp>)> {
        let ready = json::condition(self.node?, "Ready")?;
        Some((ready["status"] == "True", time(ready, "/lastTransitionTime")))
    }

    /// The last log lines of the controller about this object.
    pub(super) fn log(&self, text: &str) -> Option<String> {
        let mut about = self.index.log(self.machine.namespace(), self.machine.name()).iter();
        about.find(|line| line.text.contains(text)).map(|line| line.words())
    }
}

/// A duration as a spec writes it: whole minutes, and no more than the day that a spec may ask for.
pub(super) fn minutes(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().clamp(60, 24 * 60 * 60);
    format!("{}m", (seconds + 59) / 60)
}

/// A recorded condition.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) since: Timestamp,
}

impl Recorded<'_> {
    /// `Ready=False/NodeLost: the node ...`.
    pub(super) fn words(&self) -> String {
        format!("{}={}/{}: {}", self.kind, self.status, self.reason, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn garbage_in_a_status_hides_only_itself() {
        let status = json!({
            "phase": "Active", "nextActivation": "soon", "conditions": [{"type": 3}], "reclaims": 7, "unknown": true,
            "message": "fine",
        });
        let machine = MachineFacts::new(json!({"metadata": {"name": "a"}, "spec": {}, "status": status}));
        assert_eq!(machine.status.phase, Some(five_spot_api::Phase::Active));
        assert_eq!(machine.status.message.as_deref(), Some("fine"));
        assert!(machine.status.conditions.is_empty());
        assert!(machine.spec.is_err());
        for garbage in [json!(null), json!(3), json!([]), json!("x")] {
            let machine = MachineFacts::new(json!({"metadata": garbage, "spec": garbage, "status": garbage}));
            assert_eq!(machine.status, ScheduledMachineStatus::default());
            assert!(!machine.is_neglected(Timestamp::UNIX_EPOCH));
        }
    }

    #[test]
    fn an_object_is_neglected_only_when_a_boundary_is_long_past() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a time");
        let check = |object: Value| MachineFacts::new(object).is_neglected(now);
        let with = |status: Value| json!({"metadata": {"creationTimestamp": "2026-11-16T08:00:00Z"}, "status": status});
        assert!(check(with(json!({}))));
        assert!(!check(json!({"metadata": {"creationTimestamp": "2026-11-16T11:59:00Z"}})));
        assert!(!check(with(json!({"phase": "Active", "nextCleanup": "2026-11-16T11:59:00Z"}))));
        assert!(check(with(json!({"phase": "Active", "nextCleanup": "2026-11-16T11:50:00Z"}))));
        assert!(!check(with(json!({"phase": "Active", "nextCleanup": "2026-11-16T18:00:00Z"}))));
    }
}
