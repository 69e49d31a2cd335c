//! The facts that decide which object is reconciled first.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::references::{WorkloadKey, workload_of};
use crate::cache::workload::node_key;
use crate::transport::key::ObjectKey;

/// The priority of an object whose spec is invalid: the default of the API.
const DEFAULT_PRIORITY: u8 = 50;

/// The facts about an object that decide when its turn comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFacts {
    /// `spec.priority`.
    pub priority: u8,
    /// True if the kill switch is on and there is a Machine.
    pub kill_switch: bool,
    /// True if the owner of the machine wants it back, by the status or by the annotation on the Node.
    pub reclaimed: bool,
    /// True if the time for the cleanup of a deleted object is over, and it has yet to be released or its Machine deleted.
    pub overdue: bool,
}

/// The facts about an object, from the caches. All are at their defaults if there is no such object.
pub fn queue_facts(caches: &Caches, key: &ObjectKey) -> QueueFacts {
    let Some(object) = caches.objects.view(key) else { return QueueFacts::default() };
    let (handling, priority) = match &object.spec {
        Ok(spec) => (spec.handling, spec.priority),
        Err(spec) => (spec.handling, DEFAULT_PRIORITY),
    };
    let machine = caches.machines.view(&machine_key(key));
    let node = machine.as_ref().and_then(|machine| machine.node.as_ref());
    let is_requested = || {
        let cluster = workload_of(key, &object);
        // A Node of that name in the management cluster is somebody else's, unless the operator allows it.
        if cluster == WorkloadKey::Management && !caches.allows_management_nodes(&key.namespace) {
            return None;
        }
        let link = caches.open_link(&cluster)?;
        link.nodes.view(&node_key(node?))?.reclaim
    };
    let policy = caches.settings.policy;
    let is_over = object.view.deletion.filter(|_| object.view.has_finalizer).is_some_and(|deletion| {
        caches.now().duration_since(deletion.since) >= policy.finalizer_cleanup_timeout
    });
    let is_undeleted = machine.as_ref().is_some_and(|machine| !machine.terminating);
    QueueFacts {
        overdue: is_over && (policy.force_finalizer_on_timeout || is_undeleted),
        priority,
        kill_switch: handling.kill_switch && machine.is_some(),
        reclaimed: object.record.is_reclaimed || is_requested().is_some(),
    }
}
