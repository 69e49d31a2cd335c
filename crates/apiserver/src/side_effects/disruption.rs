//! The status of disruption budgets, which is updated with the pods that they select.

use crate::object;
use crate::select::LabelSelector;
use crate::state::State;
use crate::store::Touched;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn follow_up(state: &mut State, touched: &Touched) {
    let Some(budgets) = state.kinds.find("policy", "v1", "poddisruptionbudgets") else {
        return;
    };
    for budget in state.store.list(&budgets.store, Some(&touched.place.key.namespace)) {
        let mut changed = (*budget).clone();
        changed["status"] = status(state, &budget);
        if changed != *budget {
            state.store.put(&budgets.store, changed);
        }
    }
}

/// Returns true if the `Ready` condition of the pod is true.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn status(state: &State, budget: &Value) -> Value {
    let pods = selected_pods(state, budget);
    let disrupted = still_disrupted(budget, &pods);
    let healthy = pods
        .iter()
        .filter(|pod| {
            is_ready(pod) && !object::is_terminating(pod) && !disrupted.contains_key(object::name(pod))
        })
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let (expected, desired) = wanted(state, budget, &pods);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"],
        "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "conditions": [condition(budget, allowed > 0, &state.clock.stamp())],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status
}

fn selected_pods(state: &State, budget: &Value) -> Vec<Arc<Value>> {
    let selector = &budget["spec"]["selector"];
    let Some(resource) = state.kinds.find("", "v1", "pods").filter(|_| !selector.is_null()) else {
        return Vec::new();
    };
    let selector = LabelSelector::from_object(selector);
    let mut pods = state.store.list(&resource.store, Some(object::namespace(budget)));
    pods.retain(|pod| selector.matches(pod));
    pods
}

/// Evictions that were allowed and whose pods are not terminating yet.
fn still_disrupted(budget: &Value, pods: &[Arc<Value>]) -> Map<String, Value> {
    let mut disrupted = budget["status"]["disruptedPods"].as_object().cloned().unwrap_or_default();
    disrupted
        .retain(|name, _| pods.iter().any(|pod| object::name(pod) == name && !object::is_terminating(pod)));
    disrupted
}

/// The expected number of pods and of healthy pods.
fn wanted(state: &State, budget: &Value, pods: &[Arc<Value>]) -> (i64, i64) {
    let spec = &budget["spec"];
    if let Some(least) = spec["minAvailable"].as_i64() {
        return (i64::try_from(pods.len()).unwrap_or(i64::MAX), least);
    }
    let expected = expected_pods(state, pods);
    if !spec["maxUnavailable"].is_null() {
        return (expected, (expected - scaled(&spec["maxUnavailable"], expected)).max(0));
    }
    if !spec["minAvailable"].is_null() {
        return (expected, scaled(&spec["minAvailable"], expected));
    }
    (expected, 0)
}

/// A number, or a percentage of `total` rounded up.
fn scaled(amount: &Value, total: i64) -> i64 {
    if let Some(number) = amount.as_i64() {
        return number;
    }
    let percent =
        amount.as_str().and_then(|text| text.strip_suffix('%')).and_then(|digits| digits.parse::<i64>().ok());
    percent.map_or(0, |percent| (percent * total + 99) / 100)
}

/// The replicas of the pods' controllers.
fn expected_pods(state: &State, pods: &[Arc<Value>]) -> i64 {
    let mut controllers: Vec<&str> = pods
        .iter()
        .flat_map(|pod| object::owner_references(pod))
        .filter(|owner| owner["controller"] == true)
        .filter_map(|owner| owner["uid"].as_str())
        .collect();
    controllers.sort_unstable();
    controllers.dedup();
    controllers
        .into_iter()
        .filter_map(|uid| state.store.find_uid(uid))
        .map(|controller| controller["spec"]["replicas"].as_i64().unwrap_or(0))
        .sum()
}

fn condition(budget: &Value, is_allowed: bool, now: &str) -> Value {
    let (status, reason) =
        if is_allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut previous = budget["status"]["conditions"].as_array().into_iter().flatten();
    let since = previous
        .find(|one| one["type"] == "DisruptionAllowed" && one["status"] == status)
        .map_or_else(|| json!(now), |one| one["lastTransitionTime"].clone());
    json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": since, "observedGeneration": budget["metadata"]["generation"],
    })
}
