//! The side effects of writes: the controllers that every cluster has and that clients regard as part of the
//! API.
//!
//! They run to completion within the request that triggers them, so that runs are reproducible. In a real
//! cluster, the same effects occur a moment later.

mod crds;
mod disruption;
mod garbage;
mod namespaces;

pub(crate) use crds::begin_deletion as begin_crd_deletion;
pub(crate) use disruption::is_ready;

use crate::apply::{ManagerId, Operation, Owner, track_update};
use crate::kinds::Resource;
use crate::state::State;
use crate::store::Touched;
use crate::verbs::put_or_finish;
use serde_json::{Value, json};
use std::sync::Arc;

/// Writes a change by a controller, with the field manager that the controller has in a real cluster.
fn write_as_controller(state: &mut State, resource: &Resource, old: &Value, mut new: Value) -> Arc<Value> {
    let owner = Owner {
        id: ManagerId {
            operation: Operation::Update,
            manager: "kube-controller-manager".to_owned(),
            api_version: resource.api_version(),
            subresource: String::new(),
        },
        time: state.clock.stamp(),
        ignored: json!({}),
    };
    track_update(old, &mut new, resource.type_ref(), &owner, false);
    put_or_finish(state, resource, new)
}

/// Applies the side effects of all changes, and of the changes that these cause, until there are no more.
pub(crate) fn apply_all(state: &mut State) {
    loop {
        let touched = state.store.take_touched();
        if touched.is_empty() {
            return;
        }
        for touched in touched {
            follow_up(state, &touched);
        }
    }
}

fn follow_up(state: &mut State, touched: &Touched) {
    match touched.place.store.as_str() {
        "customresourcedefinitions.apiextensions.k8s.io" => crds::follow_up(state, touched),
        "namespaces" => namespaces::follow_up(state, touched),
        "pods" | "poddisruptionbudgets.policy" => disruption::follow_up(state, touched),
        _ => {}
    }
    garbage::follow_up(state, touched);
    if touched.removed {
        namespaces::after_removal(state, touched);
        crds::after_removal(state, touched);
    }
}
