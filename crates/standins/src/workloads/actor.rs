//! The objects to reconcile after a change of pods, Nodes and their controllers.

use super::super::context::{ActorContext, Change};
use super::super::kinds::{Kind, ObjectKey};
use super::super::work_queue::{Actor, Next};
use super::{daemon_set, deployment, replicas, scheduler};
use kube::ResourceExt as _;
use kube::api::DynamicObject;

/// The stand-in for the controllers of Deployments, `ReplicaSets` and `DaemonSets`, and for the scheduler.
#[derive(Debug, Default)]
pub(in super::super) struct Workloads {
    bound: scheduler::Bound,
}

impl Actor for Workloads {
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey> {
        let key = &change.key;
        if key.kind == Kind::node() {
            // Pods may be waiting for this Node, and every DaemonSet may need a pod there.
            let waiting = context.list(&Kind::pod(), "").filter(|(_, pod)| scheduler::is_waiting(pod));
            let sets = context.list(&Kind::daemon_set(), "");
            return waiting.chain(sets).map(|(key, _)| key.clone()).collect();
        }
        let mut concerned = Vec::new();
        if controllers().contains(&key.kind) {
            concerned.push(key.clone());
        }
        if key.kind == Kind::pod() && change.after.as_deref().is_some_and(scheduler::is_waiting) {
            concerned.push(key.clone());
        }
        concerned.extend(change.object().and_then(|object| controller(object, &key.namespace)));
        concerned
    }

    async fn reconcile(&mut self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
        let Some(object) = context.get(key).filter(|object| object.metadata.deletion_timestamp.is_none())
        else {
            return Ok(None);
        };
        if key.kind == Kind::deployment() {
            deployment::reconcile(key, &object, context).await?;
        } else if key.kind == Kind::replica_set() {
            replicas::reconcile(key, &object, context).await?;
        } else if key.kind == Kind::daemon_set() {
            daemon_set::reconcile(key, &object, context).await?;
        } else if key.kind == Kind::pod() {
            scheduler::reconcile(&object, context, &mut self.bound).await?;
        }
        Ok(None)
    }
}

/// The kinds of this stand-in's controllers.
fn controllers() -> [Kind; 3] {
    [Kind::deployment(), Kind::replica_set(), Kind::daemon_set()]
}

/// The Deployment, `ReplicaSet` or `DaemonSet` that an object belongs to.
fn controller(object: &DynamicObject, namespace: &str) -> Option<ObjectKey> {
    let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    let kind = controllers().into_iter().find(|kind| kind.kind() == owner.kind)?;
    Some(kind.key(namespace, &owner.name))
}

/// Returns true if an object belongs to this one.
pub(super) fn is_owned_by(object: &DynamicObject, owner: &DynamicObject) -> bool {
    let mut owners = object.owner_references().iter();
    owners.any(|one| one.controller == Some(true) && Some(&one.uid) == owner.metadata.uid.as_ref())
}
