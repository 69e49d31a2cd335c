//! Cluster API's `MachineDrainRule`s. Whoever wrote a rule for the drain of Cluster API
//! expects it to be kept here too.

use five_spot_core::world::PodDrain;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::{Selector, SelectorExt};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// The rules that apply to one Machine, the first by name first.
#[derive(Clone, Debug, Default)]
pub(crate) struct DrainRules {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    drain: PodDrain,
    /// Any of them; none: every pod.
    pods: Vec<PodSelector>,
}

#[derive(Clone, Debug)]
struct PodSelector {
    pod: Selector,
    namespace: Selector,
}

impl DrainRules {
    /// The rules among `objects` that apply to a Machine with these labels in a Cluster with those.
    pub(crate) fn of(objects: &[DynamicObject], machine: &Labels, cluster: &Labels) -> Self {
        let mut named: Vec<(String, Rule)> = objects
            .iter()
            .filter_map(|object| Some((object.name_any(), read(&object.data["spec"], machine, cluster)?)))
            .collect();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { rules: named.into_iter().map(|(_, rule)| rule).collect() }
    }

    /// True if anything depends on the labels of namespaces.
    pub(crate) fn look_at_namespaces(&self) -> bool {
        self.rules.iter().any(|rule| rule.pods.iter().any(|selector| !selector.namespace.selects_all()))
    }

    /// The behaviour that the first matching rule gives to a pod; `None` if none matches.
    pub(crate) fn drain(&self, pod: &Labels, namespace: &Labels) -> Option<PodDrain> {
        let applies = |rule: &&Rule| {
            rule.pods.is_empty()
                || rule.pods.iter().any(|any| any.pod.matches(pod) && any.namespace.matches(namespace))
        };
        self.rules.iter().find(applies).map(|rule| rule.drain)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSelector {
    selector: Option<LabelSelector>,
    cluster_selector: Option<LabelSelector>,
    namespace_selector: Option<LabelSelector>,
}

/// Reads a rule, if it applies to the Machine. One that cannot be read applies to nothing.
fn read(spec: &Value, machine: &Labels, cluster: &Labels) -> Option<Rule> {
    let selectors = |list: &Value| -> Option<Vec<RawSelector>> {
        if list.is_null() { Some(Vec::new()) } else { RawSelector::read_all(list) }
    };
    let machines = selectors(&spec["machines"])?;
    let mut applies = machines.is_empty();
    for raw in machines {
        let (machines, clusters) = (understand(raw.selector)?, understand(raw.cluster_selector)?);
        applies |= machines.matches(machine) && clusters.matches(cluster);
    }
    let mut pods = Vec::new();
    for raw in selectors(&spec["pods"])? {
        pods.push(PodSelector {
            pod: understand(raw.selector)?,
            namespace: understand(raw.namespace_selector)?,
        });
    }
    let drain = match spec["drain"]["behavior"].as_str()? {
        "Skip" => PodDrain::Skip,
        "WaitCompleted" => PodDrain::WaitCompleted,
        "Drain" => {
            let order = spec["drain"]["order"].as_i64().unwrap_or(0);
            PodDrain::Evict { order: i32::try_from(order).unwrap_or(0) }
        }
        _ => return None,
    };
    applies.then_some(Rule { drain, pods })
}

impl RawSelector {
    fn read_all(list: &Value) -> Option<Vec<Self>> {
        serde_json::from_value(list.clone()).ok()
    }
}

/// A selector that is absent selects everything; one that cannot be understood makes its rule void.
fn understand(selector: Option<LabelSelector>) -> Option<Selector> {
    selector.map_or_else(|| Some(Selector::default()), |selector| Selector::try_from(selector).ok())
}

/// The behaviour that Cluster API's label gives to a pod, in any spelling that Cluster API accepts.
pub(crate) fn by_label(value: &str) -> Option<PodDrain> {
    match value.to_lowercase().replacen('-', "", 1).as_str() {
        "skip" => Some(PodDrain::Skip),
        "waitcompleted" => Some(PodDrain::WaitCompleted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn rules(specs: &[(&str, Value)]) -> DrainRules {
        let object = |(name, spec): &(&str, Value)| {
            let object = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule",
                "metadata": {"name": name}, "spec": spec,
            });
            serde_json::from_value(object).unwrap()
        };
        let objects: Vec<DynamicObject> = specs.iter().map(object).collect();
        DrainRules::of(&objects, &labels(&[("pool", "desk")]), &labels(&[("env", "prod")]))
    }

    fn web() -> Labels {
        labels(&[("app", "web")])
    }

    #[test]
    fn the_first_by_name_that_matches_the_pod_counts() {
        let selects = json!([{"selector": {"matchLabels": {"app": "web"}}}]);
        let rules = rules(&[
            ("b", json!({"drain": {"behavior": "Skip"}})),
            ("a", json!({"drain": {"behavior": "Drain", "order": 7}, "pods": selects})),
        ]);
        assert_eq!(rules.drain(&web(), &labels(&[])), Some(PodDrain::Evict { order: 7 }));
        assert_eq!(rules.drain(&labels(&[]), &labels(&[])), Some(PodDrain::Skip));
    }

    #[test]
    fn machine_and_cluster_selectors_have_to_match_together() {
        let only = |machines: Value| {
            rules(&[("a", json!({"drain": {"behavior": "WaitCompleted"}, "machines": machines}))])
                .drain(&web(), &labels(&[]))
        };
        let desk = json!({"matchLabels": {"pool": "desk"}});
        let (prod, test) = (json!({"matchLabels": {"env": "prod"}}), json!({"matchLabels": {"env": "test"}}));
        assert_eq!(only(json!([{"selector": desk, "clusterSelector": prod}])), Some(PodDrain::WaitCompleted));
        assert_eq!(only(json!([{"selector": desk, "clusterSelector": test}])), None);
        assert_eq!(
            only(json!([{"clusterSelector": test}, {"selector": desk}])),
            Some(PodDrain::WaitCompleted)
        );
    }

    #[test]
    fn namespaces_are_selected_by_their_labels() {
        let pods =
            json!([{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}]);
        let rules = rules(&[("a", json!({"drain": {"behavior": "Skip"}, "pods": pods}))]);
        assert!(rules.look_at_namespaces());
        assert_eq!(rules.drain(&web(), &labels(&[("team", "x")])), Some(PodDrain::Skip));
        assert_eq!(rules.drain(&web(), &labels(&[])), None);
    }

    #[test]
    fn a_rule_that_cannot_be_understood_says_nothing() {
        let broken = rules(&[
            ("a", json!({"drain": {"behavior": "Explode"}})),
            ("b", json!({"drain": {"behavior": "Skip"}, "pods": [{"selector": 1}]})),
        ]);
        assert_eq!(broken.drain(&web(), &labels(&[])), None);
    }

    #[test]
    fn the_label_is_read_as_cluster_api_reads_it() {
        for (value, drain) in [
            ("skip", Some(PodDrain::Skip)),
            ("Skip", Some(PodDrain::Skip)),
            ("wait-completed", Some(PodDrain::WaitCompleted)),
            ("WaitCompleted", Some(PodDrain::WaitCompleted)),
            ("drain", None),
        ] {
            assert_eq!(by_label(value), drain, "{value}");
        }
    }
}
