//! The final state of an environment, without values that differ between runs: UIDs, versions and times.

use crate::environment::Environment;
use crate::kinds::{BOOTSTRAP, INFRASTRUCTURE, MACHINE, NODE, POD, SCHEDULED_MACHINE};
use five_spot_api::condition::ConditionType;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Everything that is of interest, by `Kind name`.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The objects.
    pub objects: BTreeMap<String, Value>,
}

/// Fields that contain only times or identify one incarnation of an object.
const PASSING: [&str; 31] = [
    "annotations",
    "bootID",
    "creationTimestamp",
    "failedAt",
    "finishedAt",
    "generation",
    "join",
    "lastHeartbeatTime",
    "lastScheduledTime",
    "lastTransitionTime",
    "lastUpdated",
    "machineID",
    "nextActivation",
    "nextChange",
    "nextCleanup",
    "nodeInfo",
    "observedGeneration",
    "requestedAt",
    "resourceVersion",
    "shutdownStartedAt",
    "stages",
    "startTime",
    "startedAt",
    "systemUUID",
    "timeAdded",
    "uid",
    "nodeUID",
    "until",
    // Of pods: the token of a service account, with a random name.
    "volumeMounts",
    "volumes",
    "windows",
];

impl Snapshot {
    /// Takes one.
    pub async fn take(env: &dyn Environment) -> anyhow::Result<Self> {
        let mut objects = BTreeMap::new();
        let nodes = env.list(NODE).await?;
        for kind in [SCHEDULED_MACHINE, MACHINE, BOOTSTRAP, INFRASTRUCTURE, NODE, POD] {
            for object in env.list(kind).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                // Nodes have no namespace; those of other scenarios are left out.
                if kind == NODE && !name.starts_with(env.namespace()) {
                    continue;
                }
                // Pods of a Deployment have random names, and are created and deleted without us.
                if kind == POD && !object["metadata"]["ownerReferences"].is_null() {
                    continue;
                }
                if kind == POD && is_left_behind(&object, &nodes) {
                    continue;
                }
                objects.insert(format!("{} {name}", kind.kind), lasting(&object));
            }
        }
        Ok(Self { objects })
    }

    /// The same without the record that a removal was not planned, which a clock that was wrong for a while leaves behind.
    #[must_use]
    pub fn without_unplanned_removals(&self) -> Self {
        let mut without = self.clone();
        for object in without.objects.values_mut() {
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.remove("unplannedRemoval");
            }
        }
        without
    }

    /// The same without what the last drain counted: it may have been begun again, when some of the pods had left.
    #[must_use]
    pub fn without_drain_counts(&self) -> Self {
        let drained = |condition: &&mut Value| condition["type"] == ConditionType::Drained.as_str();
        let mut without = self.clone();
        for object in without.objects.values_mut() {
            let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { continue };
            status.remove("drain");
            let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
            for condition in conditions.into_iter().flatten().filter(drained) {
                condition["message"] = Value::Null;
            }
        }
        without
    }

    /// Describes the differences from another snapshot; empty if there are none.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> =
            self.objects.keys().chain(other.objects.keys()).collect();
        let mut found = Vec::new();
        for name in names {
            let null = Value::Null;
            let (one, two) =
                (self.objects.get(name).unwrap_or(&null), other.objects.get(name).unwrap_or(&null));
            differ(name, one, two, &mut found);
        }
        found
    }
}

/// Returns true if a pod is older than its node, or has none: it was on the node before, and the garbage collector may
/// or may not have removed it.
fn is_left_behind(pod: &Value, nodes: &[Value]) -> bool {
    let made = |object: &Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    let node = nodes.iter().find(|node| node["metadata"]["name"] == pod["spec"]["nodeName"]);
    node.is_none_or(|node| made(node) > made(pod))
}

fn differ(path: &str, one: &Value, two: &Value, found: &mut Vec<String>) {
    match (one, two) {
        (Value::Object(left), Value::Object(right)) => {
            let fields: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for field in fields {
                differ(&format!("{path}.{field}"), &one[field.as_str()], &two[field.as_str()], found);
            }
        }
        (one, two) if one != two => found.push(format!("{path}: {one} became {two}")),
        _ => {}
    }
}

/// An object without values that differ between runs. Annotations hold hashes and UIDs; only their keys
/// count.
fn lasting(object: &Value) -> Value {
    let mut kept = scrub(object);
    let annotations = object["metadata"]["annotations"].as_object();
    let names: Vec<&String> = annotations.into_iter().flat_map(Map::keys).collect();
    kept["metadata"]["annotations"] = json!(names);
    kept
}

fn scrub(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !PASSING.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), scrub(value)))
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(items) => items.iter().map(scrub).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(object: &Value) -> Snapshot {
        Snapshot { objects: BTreeMap::from([("Node n".to_owned(), lasting(object))]) }
    }

    #[test]
    fn times_and_lives_do_not_count_and_everything_else_does() {
        let node = |uid: &str, cordoned: bool, by: &str| {
            snapshot(&json!({
                "metadata": {"uid": uid, "annotations": {"cordoned-by": by}},
                "spec": {"unschedulable": cordoned},
            }))
        };
        assert_eq!(node("1", true, "1").differences(&node("2", true, "2")), Vec::<String>::new());
        let found = node("1", true, "1").differences(&node("1", false, "1"));
        assert_eq!(found, ["Node n.spec.unschedulable: true became false"]);
        let empty = Snapshot { objects: BTreeMap::new() };
        assert_eq!(node("1", true, "1").differences(&empty).len(), 1);
    }
}
