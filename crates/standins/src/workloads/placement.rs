//! The choice of a Node for a pod.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use std::collections::BTreeMap;

/// The Node with the fewest pods among those that accept the pod; of equal ones the first by name.
pub(super) fn choose<'a>(
    pod_spec: &Value,
    nodes: impl Iterator<Item = &'a DynamicObject>,
    pods_on: &BTreeMap<String, usize>,
) -> Option<String> {
    nodes
        .filter(|node| takes(node, pod_spec))
        .map(ResourceExt::name_any)
        .min_by_key(|name| (pods_on.get(name).copied().unwrap_or_default(), name.clone()))
}

fn takes(node: &DynamicObject, pod_spec: &Value) -> bool {
    let mut conditions = node.data["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
    is_ready && node.data["spec"]["unschedulable"] != true && admits(node, pod_spec)
}

/// Returns true if the labels and the taints of a Node allow a pod.
pub(super) fn admits(node: &DynamicObject, pod_spec: &Value) -> bool {
    let mut taints = node.data["spec"]["taints"].as_array().into_iter().flatten();
    let selector = pod_spec["nodeSelector"].as_object();
    node.metadata.deletion_timestamp.is_none()
        && taints.all(|taint| taint["effect"] == "PreferNoSchedule" || is_tolerated(taint, pod_spec))
        && selector.is_none_or(|wanted| {
            wanted.iter().all(|(key, value)| node.labels().get(key).map(String::as_str) == value.as_str())
        })
}

fn is_tolerated(taint: &Value, pod_spec: &Value) -> bool {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let mut tolerations = pod_spec["tolerations"].as_array().into_iter().flatten();
    tolerations.any(|toleration| {
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let exists = toleration["operator"] == "Exists";
        (effect.is_empty() || effect == text(taint, "effect"))
            && ((key.is_empty() && exists) || key == text(taint, "key"))
            && (exists || text(toleration, "value") == text(taint, "value"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"zone": name}}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .expect("a Node")
    }

    fn chosen(pod_spec: &Value, nodes: &[DynamicObject], pods: &[(&str, usize)]) -> Option<String> {
        choose(
            pod_spec,
            nodes.iter(),
            &pods.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        )
    }

    #[test]
    fn the_emptiest_fitting_node_is_taken() {
        let nodes =
            [node("a", &json!({})), node("b", &json!({})), node("c", &json!({"unschedulable": true}))];
        assert_eq!(chosen(&json!({}), &nodes, &[]).as_deref(), Some("a"));
        assert_eq!(chosen(&json!({}), &nodes, &[("a", 1)]).as_deref(), Some("b"));
        assert_eq!(chosen(&json!({"nodeSelector": {"zone": "b"}}), &nodes, &[]).as_deref(), Some("b"));
        assert_eq!(chosen(&json!({"nodeSelector": {"zone": "c"}}), &nodes, &[]), None);
    }

    #[test]
    fn taints_keep_away_who_does_not_tolerate_them() {
        let nodes = [node("a", &json!({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}))];
        assert_eq!(chosen(&json!({}), &nodes, &[]), None);
        for toleration in [
            json!({"key": "k", "operator": "Exists"}),
            json!({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}),
            json!({"operator": "Exists"}),
        ] {
            assert!(chosen(&json!({"tolerations": [toleration]}), &nodes, &[]).is_some(), "{toleration}");
        }
        let other = json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]});
        assert_eq!(chosen(&other, &nodes, &[]), None);
    }
}
