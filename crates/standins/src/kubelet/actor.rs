//! Which Node or pod is to be looked at, and what is then written.

use super::super::agenda::{Actor, Next};
use super::super::kinds::{Kind, Place};
use super::super::scenario::Scenario;
use super::super::stage::{Change, Stage};
use super::super::stopwatch::Stopwatch;
use super::node::{self, Health};
use super::pod::{self, Moment};
use five_spot_apiserver::clock::Clock;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// What takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    BecomeReady,
    CountAsLost,
    Renew,
    StartPod,
    CollectPod,
}

/// All kubelets of a cluster.
#[derive(Debug)]
pub(in super::super) struct Kubelet {
    clock: Clock,
    scenario: Scenario,
    steps: Stopwatch<(String, Step)>,
    /// The Nodes that have a lease, by UID.
    leased: BTreeSet<String>,
}

impl Kubelet {
    pub(in super::super) fn new(clock: Clock, scenario: Scenario) -> Self {
        Self { clock, scenario, steps: Stopwatch::default(), leased: BTreeSet::new() }
    }
}

impl Actor for Kubelet {
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place> {
        let mut concerned = vec![change.place.clone()];
        if change.place.kind == Kind::node() {
            let pods = stage.list(&Kind::pod(), "");
            concerned.extend(
                pods.filter(|(_, pod)| pod.data["spec"]["nodeName"] == change.place.name.as_str())
                    .map(|(place, _)| place.clone()),
            );
        }
        concerned
    }

    async fn attend(&mut self, place: &Place, stage: &mut Stage) -> kube::Result<Next> {
        let Some(object) = stage.get(place) else {
            return Ok(None);
        };
        if place.kind == Kind::node() {
            self.attend_node(place, &object, stage).await
        } else if place.kind == Kind::pod() {
            self.attend_pod(place, &object, stage).await
        } else {
            Ok(None)
        }
    }
}

impl Kubelet {
    async fn attend_node(
        &mut self,
        place: &Place,
        node: &DynamicObject,
        stage: &mut Stage,
    ) -> kube::Result<Next> {
        let (timing, uid) = (self.scenario.timing(), uid(node));
        let (health, step, takes, other) = if self.scenario.is_silent(&place.name) {
            (Health::Lost, Step::CountAsLost, timing.node_monitor_grace, Step::BecomeReady)
        } else {
            (Health::Ready, Step::BecomeReady, timing.node_ready, Step::CountAsLost)
        };
        self.steps.reset(&(uid.clone(), other));
        if !node::is(node, health) {
            if let Some(rest) = self.steps.rest((uid, step), takes) {
                return Ok(Some(rest));
            }
            if let Some(patch) = node::taints(node, health) {
                stage.merge(place, patch).await?;
            }
            stage.merge_status(place, node::status(node, health, self.clock.now())).await?;
        }
        match health {
            Health::Ready => self.renew(place, node, stage, timing.heartbeat).await,
            Health::Lost => Ok(None),
        }
    }

    /// Renews the lease of a Node. Nobody watches leases, so this wakes up nobody.
    async fn renew(
        &mut self,
        place: &Place,
        node: &DynamicObject,
        stage: &mut Stage,
        every: Duration,
    ) -> kube::Result<Next> {
        let uid = uid(node);
        let is_new = self.leased.insert(uid.clone());
        if let Some(rest) = self.steps.rest((uid.clone(), Step::Renew), every).filter(|_| !is_new) {
            return Ok(Some(rest));
        }
        let lease = Kind::lease().place("kube-node-lease", &place.name);
        let now = node::micro_time(self.clock.now());
        if is_new {
            stage.create(&lease, node::lease(node, &now)).await?;
        } else {
            stage.merge(&lease, json!({"spec": {"renewTime": now}})).await?;
        }
        self.steps.restart((uid, Step::Renew));
        Ok(Some(every))
    }

    async fn attend_pod(
        &mut self,
        place: &Place,
        pod: &DynamicObject,
        stage: &mut Stage,
    ) -> kube::Result<Next> {
        let Some(node) = pod.data["spec"]["nodeName"].as_str() else {
            return Ok(None);
        };
        let (timing, now) = (self.scenario.timing(), self.clock.now());
        let Some(found) = stage.get(&Kind::node().place("", node)) else {
            // The pod garbage collector is slow, and nobody else is left.
            let rest = self.steps.rest((uid(pod), Step::CollectPod), timing.orphaned_pods);
            if rest.is_none() {
                stage.delete_now(place, pod).await?;
            }
            return Ok(rest);
        };
        self.steps.reset(&(uid(pod), Step::CollectPod));
        if self.scenario.is_silent(node) {
            return Ok(None);
        }
        match pod::next(pod, &timing, now) {
            Moment::Never => Ok(None),
            Moment::Start if !node::is(&found, Health::Ready) => Ok(None),
            Moment::Start => {
                let rest = self.steps.rest((uid(pod), Step::StartPod), timing.pod_start);
                if rest.is_none() {
                    self.steps.reset(&(uid(pod), Step::StartPod));
                    stage.merge_status(place, pod::running(pod, now)).await?;
                }
                Ok(rest)
            }
            Moment::Finish(after) | Moment::Stop(after) if !after.is_zero() => Ok(Some(after)),
            Moment::Finish(_) => {
                stage.merge_status(place, pod::ended(pod, "Succeeded", now)).await?;
                Ok(None)
            }
            Moment::Stop(_) => {
                if !pod::has_ended(pod) {
                    // As was seen of real pods: they fail, and are then gone.
                    stage.merge_status(place, pod::ended(pod, "Failed", now)).await?;
                }
                stage.delete_now(place, pod).await?;
                Ok(None)
            }
        }
    }
}

fn uid(object: &DynamicObject) -> String {
    object.uid().unwrap_or_default()
}
