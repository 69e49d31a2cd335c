//! Kubelets: nodes become ready and stay so, pods start, stop within their grace, and finish.

use super::drive::{Actor, earlier};
use super::kinds::{nodes, pods};
use super::objects::{Objects, has_condition, time_left};
use crate::clock::{Clock, whole_seconds};
use kube::api::ApiResource;
use serde_json::{Value, json};
use std::time::Duration;

/// The annotation of a pod that ends by itself this many seconds after it was created.
const FINISH_AFTER: &str = "sandbox.5spot.finos.org/finish-after-seconds";

/// The annotation of a node that no kubelet looks after: it never becomes ready, and its pods never stop.
const LOST: &str = "sandbox.5spot.finos.org/lost";

/// How kubelets behave.
#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// From a node's creation until it is ready.
    pub node_ready_after: Duration,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// From a pod's creation until it runs.
    pub pod_ready_after: Duration,
    /// From a pod's deletion until it is gone, never longer than its grace.
    pub pod_stops_after: Duration,
}

impl Default for KubeletConfig {
    fn default() -> Self {
        Self {
            node_ready_after: Duration::from_secs(20),
            heartbeat: Duration::from_mins(5),
            pod_ready_after: Duration::from_secs(3),
            pod_stops_after: Duration::from_secs(5),
        }
    }
}

/// All kubelets of a cluster.
pub struct Kubelet {
    objects: Objects,
    clock: Clock,
    config: KubeletConfig,
}

impl Kubelet {
    /// Kubelets that use `client`.
    pub fn new(client: kube::Client, clock: Clock, config: KubeletConfig) -> Self {
        Self { objects: Objects::new(client, "kubelet"), clock, config }
    }

    async fn attend_node(&self, node: &Value) -> Result<Option<Duration>, kube::Error> {
        let now = self.clock.now();
        if let Some(left) = time_left(&node["metadata"]["creationTimestamp"], self.config.node_ready_after, now) {
            return Ok(Some(left));
        }
        let ready = node["status"]["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Ready");
        let beat = ready.map_or(&Value::Null, |condition| &condition["lastHeartbeatTime"]);
        let is_ready = has_condition(node, "Ready");
        if is_ready && let Some(left) = time_left(beat, self.config.heartbeat, now) {
            return Ok(Some(left));
        }
        let since = ready.filter(|_| is_ready).map_or_else(|| json!(whole_seconds(now)), |one| one["lastTransitionTime"].clone());
        let status = json!({"status": {
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                "lastHeartbeatTime": whole_seconds(now), "lastTransitionTime": since,
            }],
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "nodeInfo": {"kubeletVersion": crate::discovery::KUBERNETES_VERSION, "osImage": "sandbox", "machineID": node["metadata"]["uid"]},
        }});
        self.objects.merge_status(&nodes(), node, status).await?;
        self.remove_not_ready_taint(node).await?;
        Ok(Some(self.config.heartbeat))
    }

    async fn remove_not_ready_taint(&self, node: &Value) -> Result<(), kube::Error> {
        let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
        let kept: Vec<&Value> = taints.iter().filter(|taint| taint["key"] != "node.kubernetes.io/not-ready").collect();
        if kept.len() == taints.len() {
            return Ok(());
        }
        // The version keeps this from undoing what somebody else does to the list meanwhile; a conflict is met again
        // at the next look.
        let latest = self.objects.get(&nodes(), "", node["metadata"]["name"].as_str().unwrap_or_default()).await?;
        let Some(latest) = latest else { return Ok(()) };
        let version = &latest["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": kept}});
        self.objects.merge(&nodes(), node, patch).await
    }

    async fn attend_pod(&self, pod: &Value) -> Result<Option<Duration>, kube::Error> {
        let now = self.clock.now();
        let deletion = &pod["metadata"]["deletionTimestamp"];
        if deletion.is_string() {
            let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
            // The deletion timestamp is the end of the grace; the pod stops before it if it is quick.
            let early = Duration::from_secs(grace).saturating_sub(self.config.pod_stops_after);
            let end = time_left(deletion, Duration::ZERO, now).map(|left| left.saturating_sub(early));
            if let Some(left) = end.filter(|left| !left.is_zero()) {
                return Ok(Some(left));
            }
            self.objects.delete(&pods(), pod, Some(0)).await?;
            return Ok(None);
        }
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            return Ok(None);
        }
        let created = &pod["metadata"]["creationTimestamp"];
        let finish = pod["metadata"]["annotations"][FINISH_AFTER].as_str().and_then(|text| text.parse().ok());
        if let Some(seconds) = finish
            && time_left(created, Duration::from_secs(seconds), now).is_none()
        {
            self.objects.merge_status(&pods(), pod, json!({"status": {"phase": "Succeeded"}})).await?;
            return Ok(None);
        }
        let until_finish = finish.and_then(|seconds| time_left(created, Duration::from_secs(seconds), now));
        if phase == "Running" {
            return Ok(until_finish);
        }
        if let Some(left) = time_left(created, self.config.pod_ready_after, now) {
            return Ok(earlier(Some(left), until_finish));
        }
        let time = whole_seconds(now);
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let statuses: Vec<Value> = containers
            .map(|one| json!({
                "name": one["name"], "image": one["image"], "imageID": "", "ready": true, "restartCount": 0,
                "started": true, "state": {"running": {"startedAt": time}}, "lastState": {},
            }))
            .collect();
        let status = json!({"status": {
            "phase": "Running", "startTime": time, "containerStatuses": statuses,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
        }});
        self.objects.merge_status(&pods(), pod, status).await?;
        Ok(until_finish)
    }
}

impl Actor for Kubelet {
    fn watches(&self) -> Vec<ApiResource> {
        vec![nodes(), pods()]
    }

    async fn step(&self) -> Result<Option<Duration>, kube::Error> {
        let mut wake = None;
        let all = self.objects.list(&nodes(), "").await?;
        let mut tended = Vec::new();
        for node in all.iter().filter(|node| node["metadata"]["annotations"][LOST].is_null()) {
            wake = earlier(wake, self.attend_node(node).await?);
            tended.push(node["metadata"]["name"].clone());
        }
        for pod in self.objects.list(&pods(), "spec.nodeName!=").await? {
            if tended.contains(&pod["spec"]["nodeName"]) {
                wake = earlier(wake, self.attend_pod(&pod).await?);
            }
        }
        Ok(wake)
    }
}
