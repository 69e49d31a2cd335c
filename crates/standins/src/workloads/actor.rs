//! Who is concerned by a change of pods, Nodes and their controllers.

use super::super::agenda::{Actor, Next};
use super::super::kinds::{Kind, Place};
use super::super::stage::{Change, Stage};
use super::{deployment, replicas, scheduler};
use kube::ResourceExt as _;
use kube::api::DynamicObject;

/// The stand-in for the controllers of Deployments and `ReplicaSets`, and for the scheduler.
#[derive(Debug, Default)]
pub(in super::super) struct Workloads {
    bound: scheduler::Bound,
}

impl Actor for Workloads {
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place> {
        let place = &change.place;
        if place.kind == Kind::node() {
            // Pods may be waiting for just this.
            let waiting = stage.list(&Kind::pod(), "").filter(|(_, pod)| scheduler::is_waiting(pod));
            return waiting.map(|(place, _)| place.clone()).collect();
        }
        let mut concerned = Vec::new();
        if place.kind == Kind::deployment() || place.kind == Kind::replica_set() {
            concerned.push(place.clone());
        }
        if place.kind == Kind::pod() && change.after.as_deref().is_some_and(scheduler::is_waiting) {
            concerned.push(place.clone());
        }
        concerned.extend(change.object().and_then(|object| controller(object, &place.namespace)));
        concerned
    }

    async fn attend(&mut self, place: &Place, stage: &mut Stage) -> kube::Result<Next> {
        let Some(object) = stage.get(place).filter(|object| object.metadata.deletion_timestamp.is_none())
        else {
            return Ok(None);
        };
        if place.kind == Kind::deployment() {
            deployment::attend(place, &object, stage).await?;
        } else if place.kind == Kind::replica_set() {
            replicas::attend(place, &object, stage).await?;
        } else if place.kind == Kind::pod() {
            scheduler::attend(&object, stage, &mut self.bound).await?;
        }
        Ok(None)
    }
}

/// The Deployment or `ReplicaSet` that an object belongs to.
fn controller(object: &DynamicObject, namespace: &str) -> Option<Place> {
    let owner = object.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    let kind =
        [Kind::deployment(), Kind::replica_set()].into_iter().find(|kind| kind.kind() == owner.kind)?;
    Some(kind.place(namespace, &owner.name))
}

/// Whether an object belongs to this one.
pub(super) fn is_owned_by(object: &DynamicObject, owner: &DynamicObject) -> bool {
    let mut owners = object.owner_references().iter();
    owners.any(|one| one.controller == Some(true) && Some(&one.uid) == owner.metadata.uid.as_ref())
}
