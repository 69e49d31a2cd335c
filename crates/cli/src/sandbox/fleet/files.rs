//! The user's own machines, validated with the same messages as in `5spot preview`.

use crate::manifest::{self, ManifestItem, Object, Problem, Source};
use crate::sandbox::fleet::{InitialObject, SandboxFleet};
use crate::validity::Checked;
use serde_json::Value;

/// Returns all objects in the files, or all problems with them.
pub fn read(sources: &[Source]) -> Result<SandboxFleet, Vec<Problem>> {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for finding in sources.iter().flat_map(manifest::read) {
        match finding {
            ManifestItem::Object(Object { location, value }) => match Checked::new(value.clone()) {
                Ok(_) => objects.push(InitialObject { value: as_new(value), location: Some(location) }),
                Err(faults) => {
                    problems
                        .extend(faults.into_iter().map(|fault| Problem::BadField(location.clone(), fault)));
                }
            },
            ManifestItem::Other(Object { location, value }) => {
                objects.push(InitialObject { value: as_new(value), location: Some(location) });
            }
            ManifestItem::Problem(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(SandboxFleet { objects, script: Vec::new() }) } else { Err(problems) }
}

/// Removes the fields that an API server sets, so that a dump of a cluster can be loaded.
fn as_new(mut object: Value) -> Value {
    const SERVERS_OWN: [&str; 9] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "uid",
    ];
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVERS_OWN.contains(&field.as_str()));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dump_of_another_cluster_can_be_loaded() {
        let dumped = json!({
            "kind": "Deployment", "status": {"replicas": 1},
            "metadata": {"name": "a", "labels": {"b": "c"}, "uid": "u", "resourceVersion": "7", "finalizers": ["f"]},
        });
        assert_eq!(
            as_new(dumped),
            json!({"kind": "Deployment", "metadata": {"name": "a", "labels": {"b": "c"}}})
        );
    }
}
