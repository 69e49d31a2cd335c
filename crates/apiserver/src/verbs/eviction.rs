//! POST to `pods/<name>/eviction`: a deletion that respects the pod's disruption budget.

use super::delete::{delete_object, parse_options, wrong_uid};
use super::{Call, decode};
use crate::error::ApiError;
use crate::frontend::Reply;
use crate::kinds::Resource;
use crate::object;
use crate::select::LabelSelector;
use crate::state::State;
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn evict(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let eviction = decode::body(call)?;
    let named = object::name(&eviction);
    if !named.is_empty() && named != call.name() {
        return Err(ApiError::bad_request(format!(
            "name in URL does not match name in Eviction object: {named:?} vs {:?}",
            call.name()
        )));
    }
    let pod = state
        .find(&call.resource, &call.namespace, call.name())
        .cloned()
        .ok_or_else(|| ApiError::not_found(call.resource.subject(call.name())))?;
    let request = parse_options(&eviction["deleteOptions"], call)?;
    if let Some(uid) = &request.precondition_uid
        && uid != object::uid(&pod)
    {
        return Err(wrong_uid(&call.resource, call.name(), uid, object::uid(&pod)));
    }
    if !ignores_budgets(&pod) {
        ask_budget(state, &pod, request.dry_run)?;
    }
    if !request.dry_run && !object::is_terminating(&pod) {
        set_disruption_condition(state, call, &pod);
    }
    delete_object(state, &call.resource, &call.namespace, call.name(), &request)?;
    Ok(Reply::json(
        StatusCode::CREATED,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Sets the `DisruptionTarget` condition of the pod.
fn set_disruption_condition(state: &mut State, call: &Call, pod: &Value) {
    let mut changed = pod.clone();
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": state.clock.stamp(),
    });
    match changed["status"].get_mut("conditions").and_then(Value::as_array_mut) {
        Some(list) => {
            list.retain(|one| one["type"] != "DisruptionTarget");
            list.push(condition);
        }
        None => changed["status"]["conditions"] = json!([condition]),
    }
    // This condition has no owner in `managedFields`: the server writes it, not the client.
    state.store.put(&call.resource.store, changed);
}

/// A pod that is pending, finished or terminating does not count against a budget.
fn ignores_budgets(pod: &Value) -> bool {
    object::is_terminating(pod)
        || matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"))
}

fn ask_budget(state: &mut State, pod: &Value, dry_run: bool) -> Result<(), ApiError> {
    let Some(budgets) = state.kinds.find("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    let matching = matching_budgets(state, &budgets, pod);
    let budget = match matching.as_slice() {
        [] => return Ok(()),
        [only] => only,
        _ => {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
        }
    };
    if is_unhealthy_and_evictable(pod, budget) {
        return Ok(());
    }
    let name = object::name(budget);
    let status = &budget["status"];
    if status["observedGeneration"].as_i64().unwrap_or(0)
        < budget["metadata"]["generation"].as_i64().unwrap_or(0)
    {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many_requests(&cause, Some(10)));
    }
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    if allowed <= 0 {
        let cause = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status["desiredHealthy"], status["currentHealthy"]
        );
        return Err(too_many_requests(&cause, None));
    }
    if !dry_run {
        let mut changed = (**budget).clone();
        changed["status"]["disruptionsAllowed"] = (allowed - 1).into();
        changed["status"]["disruptedPods"][object::name(pod)] = state.clock.stamp().into();
        state.store.put(&budgets.store, changed);
    }
    Ok(())
}

/// The budgets whose selector matches the pod.
pub(crate) fn matching_budgets(state: &State, budgets: &Resource, pod: &Value) -> Vec<Arc<Value>> {
    let mut found = state.store.list(&budgets.store, Some(object::namespace(pod)));
    found.retain(|budget| {
        let selector = &budget["spec"]["selector"];
        !selector.is_null() && LabelSelector::from_object(selector).matches(pod)
    });
    found
}

/// A pod that is not ready may be evicted if the budget is met without it, or if the budget always allows it.
fn is_unhealthy_and_evictable(pod: &Value, budget: &Value) -> bool {
    if crate::side_effects::is_ready(pod) {
        return false;
    }
    if budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" {
        return true;
    }
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy")
}

fn too_many_requests(cause: &str, retry_after: Option<u64>) -> ApiError {
    let mut error = ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    error.details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
    if let Some(seconds) = retry_after {
        error.details["retryAfterSeconds"] = seconds.into();
    }
    error
}
