//! The behaviour of a drain for a pod: Cluster API's filters, in its order.

use super::Facts;
use five_spot_apiserver::LabelSelector;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const MIRROR_ANNOTATION: &str = "kubernetes.io/config.cache";
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

/// The time for which a drain waits for a deleted pod on an unreachable Node.
const WAIT_WHEN_UNREACHABLE: SignedDuration = SignedDuration::from_secs(1);

/// The behaviour of a drain pass for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// The pod is ignored.
    Skip,
    /// The pod blocks the drain, but is not evicted: it must finish on its own.
    Wait,
    /// The pod is evicted after all pods of a lower order.
    Drain(i64),
}

impl Treatment {
    /// The order of a pod in the drain; `None` if it is ignored.
    pub(super) fn order(self) -> Option<i64> {
        match self {
            Self::Skip => None,
            Self::Wait => Some(0),
            Self::Drain(order) => Some(order),
        }
    }
}

/// The facts besides the pod that determine its treatment.
pub(super) struct Circumstances<'a> {
    /// The drain rules for this Machine, sorted by name.
    pub(super) rules: Vec<&'a DynamicObject>,
    /// The labels of namespaces.
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// The existing `DaemonSets`, by namespace and name.
    pub(super) daemon_sets: BTreeSet<(String, String)>,
    pub(super) is_unreachable: bool,
    pub(super) now: Timestamp,
}

pub(super) fn treatment(pod: &Pod, circumstances: &Circumstances<'_>) -> Treatment {
    if circumstances.is_unreachable
        && let Some(end) = &pod.metadata.deletion_timestamp
        && circumstances.now.duration_since(end.0) > WAIT_WHEN_UNREACHABLE
    {
        return Treatment::Skip;
    }
    let namespace = pod.namespace().unwrap_or_default();
    if !has_finished(pod)
        && let Some(name) = daemon_set(pod)
        && circumstances.daemon_sets.contains(&(namespace.clone(), name))
    {
        return Treatment::Skip;
    }
    if pod.annotations().contains_key(MIRROR_ANNOTATION) {
        return Treatment::Skip;
    }
    match pod.labels().get(DRAIN_LABEL).map(|value| value.to_lowercase().replacen('-', "", 1)).as_deref() {
        Some("skip") => return Treatment::Skip,
        Some("waitcompleted") => return Treatment::Wait,
        // Unknown values are ignored.
        Some(_) | None => {}
    }
    let labels = circumstances.namespaces.get(&namespace).cloned().unwrap_or_default();
    let Some(rule) = circumstances.rules.iter().find(|rule| selects(rule, pod, &labels)) else {
        return Treatment::Drain(0);
    };
    let drain = &rule.data["spec"]["drain"];
    match drain["behavior"].as_str() {
        Some("Skip") => Treatment::Skip,
        Some("WaitCompleted") => Treatment::Wait,
        // Cluster API's webhook refuses all other values.
        Some(_) | None => Treatment::Drain(drain["order"].as_i64().unwrap_or(0)),
    }
}

fn has_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The `DaemonSet` that is the controller of a pod.
pub(super) fn daemon_set(pod: &Pod) -> Option<String> {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    (owner.kind == "DaemonSet").then(|| owner.name.clone())
}

/// Returns true if a rule applies to this Machine.
pub(super) fn is_for(rule: &DynamicObject, facts: &Facts) -> bool {
    let cluster = facts.cluster.as_ref().map(|cluster| cluster.labels().clone()).unwrap_or_default();
    matches(rule, "machines", facts.machine.labels(), "clusterSelector", &cluster)
}

fn selects(rule: &DynamicObject, pod: &Pod, namespace: &BTreeMap<String, String>) -> bool {
    matches(rule, "pods", pod.labels(), "namespaceSelector", namespace)
}

/// Returns true if one entry of a list selects both an object and its parent. An empty list and an absent
/// selector select everything.
fn matches(
    rule: &DynamicObject,
    list: &str,
    labels: &BTreeMap<String, String>,
    outer_selector: &str,
    outer_labels: &BTreeMap<String, String>,
) -> bool {
    let selected = |selector: &Value, labels: &BTreeMap<String, String>| {
        let object = json!({"metadata": {"labels": labels}});
        selector.is_null() || LabelSelector::from_object(selector).matches(&object)
    };
    let entries = rule.data["spec"][list].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.is_empty()
        || entries
            .iter()
            .any(|one| selected(&one["selector"], labels) && selected(&one[outer_selector], outer_labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": spec})).expect("a rule")
    }

    fn treated(pod: &Value, rules: &[DynamicObject], is_unreachable: bool) -> Treatment {
        let pod: Pod = serde_json::from_value(pod.clone()).expect("a pod");
        let red = BTreeMap::from([("colour".to_owned(), "red".to_owned())]);
        let circumstances = Circumstances {
            rules: rules.iter().collect(),
            namespaces: BTreeMap::from([("red".to_owned(), red)]),
            daemon_sets: BTreeSet::from([("red".to_owned(), "logs".to_owned())]),
            is_unreachable,
            now: "2026-01-01T00:00:10Z".parse().expect("an instant"),
        };
        treatment(&pod, &circumstances)
    }

    fn pod(metadata: &Value) -> Value {
        let mut pod = json!({"metadata": metadata});
        pod["metadata"]["namespace"] = "red".into();
        pod
    }

    #[test]
    fn each_pod_is_treated_by_its_marks() {
        for (metadata, expected) in [
            (json!({"name": "web"}), Treatment::Drain(0)),
            (json!({"labels": {DRAIN_LABEL: "skip"}}), Treatment::Skip),
            (json!({"labels": {DRAIN_LABEL: "Skip"}}), Treatment::Skip),
            (json!({"labels": {DRAIN_LABEL: "wait-completed"}}), Treatment::Wait),
            (json!({"labels": {DRAIN_LABEL: "WaitCompleted"}}), Treatment::Wait),
            (json!({"labels": {DRAIN_LABEL: "what"}}), Treatment::Drain(0)),
            (json!({"annotations": {MIRROR_ANNOTATION: "x"}}), Treatment::Skip),
        ] {
            assert_eq!(treated(&pod(&metadata), &[], false), expected, "{metadata}");
        }
    }

    #[test]
    fn pods_of_a_daemon_set_stay_while_it_exists_and_they_run() {
        let of = |name: &str, phase: &str| {
            let owner = json!([{
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "u", "controller": true,
            }]);
            let mut pod = pod(&json!({"ownerReferences": owner}));
            pod["status"] = json!({"phase": phase});
            treated(&pod, &[], false)
        };
        assert_eq!(of("logs", "Running"), Treatment::Skip);
        assert_eq!(of("logs", "Failed"), Treatment::Drain(0));
        assert_eq!(of("orphaned", "Running"), Treatment::Drain(0));
    }

    #[test]
    fn a_pod_that_ends_on_a_silent_node_is_not_waited_for() {
        let ending = |end: &str| pod(&json!({"deletionTimestamp": end}));
        assert_eq!(treated(&ending("2026-01-01T00:00:05Z"), &[], true), Treatment::Skip);
        assert_eq!(treated(&ending("2026-01-01T00:00:09Z"), &[], true), Treatment::Drain(0));
        assert_eq!(treated(&ending("2026-01-01T00:00:05Z"), &[], false), Treatment::Drain(0));
    }

    #[test]
    fn the_first_rule_that_selects_a_pod_decides() {
        let app = |app: &str| json!({"selector": {"matchLabels": {"app": app}}});
        let rules = [
            rule(&json!({"drain": {"behavior": "Skip"}, "pods": [app("a")]})),
            rule(&json!({"drain": {"behavior": "WaitCompleted"}, "pods": [app("a"), app("b")]})),
            rule(&json!({
                "drain": {"behavior": "Drain", "order": 7},
                "pods": [{"namespaceSelector": {"matchLabels": {"colour": "red"}}}],
            })),
        ];
        let treated = |app: &str, namespace: &str| {
            let mut pod = pod(&json!({"labels": {"app": app}}));
            pod["metadata"]["namespace"] = namespace.into();
            treated(&pod, &rules, false)
        };
        assert_eq!(treated("a", "red"), Treatment::Skip);
        assert_eq!(treated("b", "red"), Treatment::Wait);
        assert_eq!(treated("c", "red"), Treatment::Drain(7));
        assert_eq!(treated("c", "blue"), Treatment::Drain(0));
    }

    #[test]
    fn a_rule_is_for_machines_of_clusters() {
        let object = |value: Value| std::sync::Arc::new(serde_json::from_value(value).expect("an object"));
        let facts = Facts {
            machine: object(json!({"metadata": {"name": "m", "labels": {"size": "big"}}})),
            cluster: Some(object(json!({"metadata": {"name": "c", "labels": {"env": "prod"}}}))),
            ..Facts::of_nothing()
        };
        let machines = |entry: Value| is_for(&rule(&json!({"machines": [entry]})), &facts);
        let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
        assert!(is_for(&rule(&json!({})), &facts));
        assert!(machines(
            json!({"selector": labels("size", "big"), "clusterSelector": labels("env", "prod")})
        ));
        assert!(!machines(
            json!({"selector": labels("size", "big"), "clusterSelector": labels("env", "test")})
        ));
        assert!(!machines(json!({"selector": labels("size", "small")})));
    }
}
