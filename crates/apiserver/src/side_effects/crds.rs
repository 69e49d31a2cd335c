//! CRDs: names are accepted at once, and a deleted CRD deletes its objects.

use crate::kinds::{Resource, StoreId};
use crate::object;
use crate::state::State;
use crate::store::Touched;
use crate::strategy;
use crate::verbs::{DeleteRequest, delete_object, put_or_finish};
use serde_json::{Value, json};
use std::sync::Arc;

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn follow_up(state: &mut State, touched: &Touched) {
    let Some(crd) = state.store.at(&touched.place).cloned() else {
        return;
    };
    if object::is_terminating(&crd) {
        delete_instances(state, &crd);
        finish_if_empty(state, &crd);
        return;
    }
    let mut accepted = (*crd).clone();
    strategy::accept_crd(&mut accepted, &state.clock.stamp());
    let crd = if accepted == *crd { crd } else { state.store.put(&touched.place.store, accepted) };
    state.kinds.serve_crd(&crd);
}

/// Marks a CRD as terminating.
pub(crate) fn begin_deletion(crd: &mut Value, now: &str) {
    let mut finalizers: Vec<String> = object::finalizers(crd).map(str::to_owned).collect();
    if !finalizers.iter().any(|one| one == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    object::set_finalizers(crd, &finalizers);
    let terminating = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let conditions = &mut crd["status"]["conditions"];
    match conditions {
        Value::Array(list) => list.push(terminating),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *conditions = json!([terminating]);
        }
    }
}

fn resource_of(state: &State, crd: &Value) -> Option<Arc<Resource>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let store = StoreId::new(&text(&crd["spec"]["group"]), &text(&crd["spec"]["names"]["plural"]));
    state.kinds.by_store(&store)
}

fn delete_instances(state: &mut State, crd: &Value) {
    let Some(resource) = resource_of(state, crd) else {
        return;
    };
    for instance in state.store.list(&resource.store, None) {
        if !object::is_terminating(&instance) {
            let (namespace, name) = (object::namespace(&instance), object::name(&instance));
            // Already deleted is fine.
            let _ = delete_object(state, &resource, namespace, name, &DeleteRequest::default());
        }
    }
}

fn finish_if_empty(state: &mut State, crd: &Value) {
    let is_empty = resource_of(state, crd).is_none_or(|resource| state.store.count(&resource.store) == 0);
    if !is_empty || !object::finalizers(crd).any(|one| one == CLEANUP) {
        return;
    }
    let Some(definitions) = state.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    let kept: Vec<String> =
        object::finalizers(crd).filter(|one| *one != CLEANUP).map(str::to_owned).collect();
    let mut changed = crd.clone();
    object::set_finalizers(&mut changed, &kept);
    if let Some(resource) = resource_of(state, crd) {
        // The watches must be notified that there will be no more events.
        state.store.mark_changed(&resource.store);
    }
    state.kinds.withdraw_crd(crd);
    put_or_finish(state, &definitions, changed);
}

/// Deletes a terminating CRD after its last object.
pub(super) fn after_removal(state: &mut State, touched: &Touched) {
    if state.store.count(&touched.place.store) > 0 {
        return;
    }
    let Some(resource) = state.kinds.by_store(&touched.place.store).filter(|one| one.custom().is_some())
    else {
        return;
    };
    let Some(definitions) = state.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        return;
    };
    let name = format!("{}.{}", resource.plural, resource.group);
    if let Some(crd) = state.find(&definitions, "", &name).cloned()
        && object::is_terminating(&crd)
    {
        finish_if_empty(state, &crd);
    }
}
