//! Binds every unassigned pod to a Node that accepts it.

use super::super::context::ActorContext;
use super::super::kinds::Kind;
use super::placement;
use kube::api::DynamicObject;
use std::collections::BTreeMap;

/// The Nodes of newly bound pods, by pod UID. They count before the watch reports them, because otherwise two
/// pods would be bound to the same Node.
pub(super) type Bound = BTreeMap<String, String>;

/// Returns true if the scheduler is responsible for a pod.
pub(super) fn is_waiting(pod: &DynamicObject) -> bool {
    let spec = &pod.data["spec"];
    spec["nodeName"].is_null()
        && spec["schedulerName"] == "default-scheduler"
        && spec["schedulingGates"].as_array().is_none_or(Vec::is_empty)
        && pod.metadata.deletion_timestamp.is_none()
}

pub(super) async fn reconcile(
    pod: &DynamicObject,
    context: &mut ActorContext,
    bound: &mut Bound,
) -> kube::Result<()> {
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    if !is_waiting(pod) || bound.contains_key(&uid) {
        return Ok(());
    }
    let pods_on = count(context, bound);
    let nodes = context.list(&Kind::node(), "").map(|(_, node)| &**node);
    let Some(node) = placement::choose(&pod.data["spec"], nodes, &pods_on) else {
        return Ok(());
    };
    context.bind(pod, &node).await?;
    bound.insert(uid, node);
    Ok(())
}

/// The number of pods on each Node. Removes bindings that the watch has reported.
fn count(context: &ActorContext, bound: &mut Bound) -> BTreeMap<String, usize> {
    let mut pods_on: BTreeMap<String, usize> = BTreeMap::new();
    let mut still_bound = Bound::new();
    for (_, pod) in context.list(&Kind::pod(), "") {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let just_bound = bound.get(uid);
        if let Some(node) = pod.data["spec"]["nodeName"].as_str().or(just_bound.map(String::as_str)) {
            *pods_on.entry(node.to_owned()).or_default() += 1;
        }
        if let Some(node) = just_bound.filter(|_| pod.data["spec"]["nodeName"].is_null()) {
            still_bound.insert(uid.to_owned(), node.clone());
        }
    }
    *bound = still_bound;
    pods_on
}
