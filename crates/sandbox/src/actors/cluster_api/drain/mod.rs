//! One pass of a drain: which pods are asked to go, which are waited for, which are left.

use super::super::stage::{Eviction, Stage};
use crate::select::LabelSelector;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

/// What a pass does about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// It does not count.
    Skip,
    /// It holds the drain, but is not disturbed: it ends by itself, or is ending.
    Wait,
    Evict,
}

/// A pod that still holds the drain, and why; in the words of the condition.
pub(super) type Holder = String;

/// Makes one pass. No holder left means that the Node is drained.
pub(super) async fn pass(
    stage: &mut Stage,
    machine: &DynamicObject,
    node: &DynamicObject,
    rules: &[DynamicObject],
) -> kube::Result<Vec<Holder>> {
    let is_unreachable = super::condition_status(node, "Ready") == "Unknown";
    let on_node = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
    let api: Api<Pod> = Api::all(stage.workload());
    let mut holders = Vec::new();
    for pod in api.list(&on_node).await? {
        let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        match treatment(&pod, machine, rules, is_unreachable) {
            Treatment::Skip => {}
            Treatment::Wait => holders.push(format!("* Pod {name}: waiting for its end")),
            Treatment::Evict => match stage.evict(&pod).await? {
                Eviction::Granted => holders.push(format!(
                    "* Pod {name}: deletionTimestamp set, but still not removed from the Node"
                )),
                Eviction::Refused(why) => holders.push(format!("* Pod {name}: cannot evict pod: {why}")),
            },
        }
    }
    Ok(holders)
}

fn treatment(pod: &Pod, machine: &DynamicObject, rules: &[DynamicObject], is_unreachable: bool) -> Treatment {
    let is_daemon = pod
        .owner_references()
        .iter()
        .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    if is_daemon || pod.annotations().contains_key(MIRROR_ANNOTATION) {
        return Treatment::Skip;
    }
    if pod.metadata.deletion_timestamp.is_some() {
        // Nobody is left on an unreachable Node to end it.
        return if is_unreachable { Treatment::Skip } else { Treatment::Wait };
    }
    let label = pod.labels().get(DRAIN_LABEL).map(|value| value.to_lowercase());
    let behaviour = label.or_else(|| {
        let rule = rules.iter().find(|rule| applies(rule, machine, pod))?;
        rule.data["spec"]["drain"]["behavior"].as_str().map(str::to_lowercase)
    });
    match behaviour.as_deref() {
        Some("skip") => Treatment::Skip,
        Some("wait-completed" | "waitcompleted") => Treatment::Wait,
        Some(_) | None => Treatment::Evict,
    }
}

/// Whether a rule means this pod on this Machine. An empty list of selectors means all.
fn applies(rule: &DynamicObject, machine: &DynamicObject, pod: &Pod) -> bool {
    let selected = |field: &str, labels: Value| {
        let selectors = rule.data["spec"][field].as_array().map(Vec::as_slice).unwrap_or_default();
        let object = json!({"metadata": {"labels": labels}});
        selectors.is_empty()
            || selectors.iter().any(|one| LabelSelector::from_object(&one["selector"]).matches(&object))
    };
    selected("machines", json!(machine.labels())) && selected("pods", json!(pod.labels()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn treated(metadata: &Value) -> Treatment {
        let pod = serde_json::from_value(json!({"metadata": metadata})).expect("a pod");
        let object = |value| serde_json::from_value::<DynamicObject>(value).expect("an object");
        let machine = object(json!({"metadata": {"name": "m"}}));
        let rule = object(json!({
            "metadata": {"name": "r"},
            "spec": {"drain": {"behavior": "Skip"}, "pods": [{"selector": {"matchLabels": {"app": "ruled"}}}]},
        }));
        treatment(&pod, &machine, &[rule], false)
    }

    #[test]
    fn each_pod_is_treated_by_its_marks() {
        assert_eq!(treated(&json!({"name": "web"})), Treatment::Evict);
        assert_eq!(treated(&json!({"name": "web", "labels": {"app": "ruled"}})), Treatment::Skip);
        assert_eq!(treated(&json!({"name": "web", "labels": {DRAIN_LABEL: "skip"}})), Treatment::Skip);
        assert_eq!(
            treated(&json!({"name": "web", "labels": {DRAIN_LABEL: "wait-completed"}})),
            Treatment::Wait
        );
        assert_eq!(
            treated(&json!({"name": "web", "annotations": {MIRROR_ANNOTATION: "x"}})),
            Treatment::Skip
        );
        let daemon = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]);
        assert_eq!(treated(&json!({"name": "web", "ownerReferences": daemon})), Treatment::Skip);
        let ending = json!({"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(treated(&ending), Treatment::Wait);
    }
}
