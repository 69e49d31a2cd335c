//! A `DaemonSet`: one pod on every matching Node. The pods are bound to their Nodes when they are created;
//! the real controller leaves that to the scheduler, with an affinity.

use super::super::context::ActorContext;
use super::super::kinds::{Kind, ObjectKey};
use super::{placement, pods};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The tolerations that the real controller adds to every pod of a `DaemonSet`.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) async fn reconcile(
    key: &ObjectKey,
    set: &DynamicObject,
    context: &mut ActorContext,
) -> kube::Result<()> {
    let spec = pod_spec(set);
    let nodes = context.list(&Kind::node(), "").filter(|(_, node)| placement::admits(node, &spec));
    let wanted: BTreeSet<String> = nodes.map(|(_, node)| node.name_any()).collect();
    let mut missing = wanted.clone();
    for (pod_key, pod) in pods::active(key, set, context) {
        let node = pod.data["spec"]["nodeName"].as_str().unwrap_or_default();
        let is_surplus = !missing.remove(node);
        // The pod garbage collector deletes the pods of deleted Nodes.
        if is_surplus && context.get(&Kind::node().key("", node)).is_some() {
            context.delete(&pod_key, &pod).await?;
        }
    }
    for node in missing {
        let mut bound = spec.clone();
        bound["nodeName"] = node.into();
        context.create(&Kind::pod().key(&key.namespace, ""), pods::pod(key, set, &bound)).await?;
    }
    let pods = pods::active(key, set, context);
    let ready = pods.iter().filter(|(_, pod)| pods::is_ready(pod)).count();
    let status = json!({
        "observedGeneration": set.metadata.generation, "desiredNumberScheduled": wanted.len(),
        "currentNumberScheduled": pods.len(), "updatedNumberScheduled": pods.len(), "numberReady": ready,
        "numberAvailable": ready, "numberMisscheduled": 0,
    });
    context.merge_status(key, status).await
}

/// The spec of the template, with the additional tolerations.
fn pod_spec(set: &DynamicObject) -> Value {
    let mut spec = set.data["spec"]["template"]["spec"].clone();
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    tolerations
        .extend(TOLERATED.map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})));
    spec["tolerations"] = tolerations.into();
    spec
}
