//! The Nodes and pods to reconcile, and the writes for them.

use super::super::context::{ActorContext, Change};
use super::super::kinds::{Kind, ObjectKey};
use super::super::settings::StandInSettings;
use super::super::stopwatch::Stopwatch;
use super::super::work_queue::{Actor, Next};
use super::node::{self, Health};
use super::pod::{self, Moment};
use five_spot_apiserver::clock::Clock;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// A step with a duration.
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
    settings: StandInSettings,
    steps: Stopwatch<(String, Step)>,
    /// The Nodes that have a lease, by UID.
    leased: BTreeSet<String>,
}

impl Kubelet {
    pub(in super::super) fn new(clock: Clock, settings: StandInSettings) -> Self {
        Self { clock, settings, steps: Stopwatch::default(), leased: BTreeSet::new() }
    }
}

impl Actor for Kubelet {
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey> {
        let mut concerned = vec![change.key.clone()];
        if change.key.kind == Kind::node() {
            let pods = context.list(&Kind::pod(), "");
            concerned.extend(
                pods.filter(|(_, pod)| pod.data["spec"]["nodeName"] == change.key.name.as_str())
                    .map(|(key, _)| key.clone()),
            );
        }
        concerned
    }

    async fn reconcile(&mut self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
        let Some(object) = context.get(key) else {
            return Ok(None);
        };
        if key.kind == Kind::node() {
            self.attend_node(key, &object, context).await
        } else if key.kind == Kind::pod() {
            self.attend_pod(key, &object, context).await
        } else {
            Ok(None)
        }
    }
}

impl Kubelet {
    async fn attend_node(
        &mut self,
        key: &ObjectKey,
        node: &DynamicObject,
        context: &mut ActorContext,
    ) -> kube::Result<Next> {
        let (timing, uid) = (self.settings.timing(), uid(node));
        let (health, step, takes, other) = if self.settings.is_silent(&key.name) {
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
                context.merge(key, patch).await?;
            }
            context.merge_status(key, node::status(node, health, self.clock.now())).await?;
        }
        match health {
            Health::Ready => self.renew(key, node, context, timing.heartbeat).await,
            Health::Lost => Ok(None),
        }
    }

    /// Renews the lease of a Node. No component watches leases, so this triggers nothing.
    async fn renew(
        &mut self,
        key: &ObjectKey,
        node: &DynamicObject,
        context: &mut ActorContext,
        every: Duration,
    ) -> kube::Result<Next> {
        let uid = uid(node);
        let is_new = self.leased.insert(uid.clone());
        if let Some(rest) = self.steps.rest((uid.clone(), Step::Renew), every).filter(|_| !is_new) {
            return Ok(Some(rest));
        }
        let lease = Kind::lease().key("kube-node-lease", &key.name);
        let now = node::micro_time(self.clock.now());
        if is_new {
            context.create(&lease, node::lease(node, &now)).await?;
        } else {
            context.merge(&lease, json!({"spec": {"renewTime": now}})).await?;
        }
        self.steps.restart((uid, Step::Renew));
        Ok(Some(every))
    }

    async fn attend_pod(
        &mut self,
        key: &ObjectKey,
        pod: &DynamicObject,
        context: &mut ActorContext,
    ) -> kube::Result<Next> {
        let Some(node) = pod.data["spec"]["nodeName"].as_str() else {
            return Ok(None);
        };
        let (timing, now) = (self.settings.timing(), self.clock.now());
        let Some(found) = context.get(&Kind::node().key("", node)) else {
            // The pod garbage collector is slow, and no other component deletes these pods.
            let rest = self.steps.rest((uid(pod), Step::CollectPod), timing.orphaned_pods);
            if rest.is_none() {
                context.delete_now(key, pod).await?;
            }
            return Ok(rest);
        };
        self.steps.reset(&(uid(pod), Step::CollectPod));
        if self.settings.is_silent(node) {
            return Ok(None);
        }
        match pod::next(pod, &timing, now) {
            Moment::Never => Ok(None),
            Moment::Start if !node::is(&found, Health::Ready) => Ok(None),
            Moment::Start => {
                let rest = self.steps.rest((uid(pod), Step::StartPod), timing.pod_start);
                if rest.is_none() {
                    self.steps.reset(&(uid(pod), Step::StartPod));
                    context.merge_status(key, pod::running(pod, now)).await?;
                }
                Ok(rest)
            }
            Moment::Finish(after) | Moment::Stop(after) if !after.is_zero() => Ok(Some(after)),
            Moment::Finish(_) => {
                context.merge_status(key, pod::ended(pod, "Succeeded", now)).await?;
                Ok(None)
            }
            Moment::Stop(_) => {
                if !pod::has_ended(pod) {
                    // As observed with real pods: they fail first and are then deleted.
                    context.merge_status(key, pod::ended(pod, "Failed", now)).await?;
                }
                context.delete_now(key, pod).await?;
                Ok(None)
            }
        }
    }
}

fn uid(object: &DynamicObject) -> String {
    object.uid().unwrap_or_default()
}
