//! The next step of a pod, and its time.

use super::super::settings::Timing;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// The annotation with the time that a pod takes to stop, such as `2s`; limited by its grace period.
pub const STOPS_AFTER_ANNOTATION: &str = "sandbox.5spot.finos.org/stops-after";
/// The annotation with the time after which a pod completes, such as `10m`.
pub const FINISHES_AFTER_ANNOTATION: &str = "sandbox.5spot.finos.org/finishes-after";

/// The next step of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Nothing until the next change.
    Never,
    /// The pod is bound and not started.
    Start,
    /// The pod completes after this time.
    Finish(Duration),
    /// The pod was asked to stop, and stops after this time.
    Stop(Duration),
}

/// Returns the next step of a pod on a Node with a running kubelet.
pub(super) fn next(pod: &DynamicObject, timing: &Timing, now: Timestamp) -> Moment {
    if let Some(end) = &pod.metadata.deletion_timestamp {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        let takes =
            annotated(pod, STOPS_AFTER_ANNOTATION).unwrap_or_else(|| signed(timing.pod_stop)).min(grace);
        let takes = if has_ended(pod) { SignedDuration::ZERO } else { takes };
        let requested = end.0.checked_sub(grace).unwrap_or(end.0);
        return Moment::Stop(until(requested, takes, now));
    }
    match pod.data["status"]["phase"].as_str() {
        Some("Running") => finish(pod, timing, now).map_or(Moment::Never, Moment::Finish),
        Some("Succeeded" | "Failed") => Moment::Never,
        Some(_) | None => Moment::Start,
    }
}

/// Returns true if the containers of the pod have ended.
pub(super) fn has_ended(pod: &DynamicObject) -> bool {
    matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn finish(pod: &DynamicObject, timing: &Timing, now: Timestamp) -> Option<Duration> {
    let is_job = pod.owner_references().iter().any(|owner| owner.kind == "Job");
    let takes = annotated(pod, FINISHES_AFTER_ANNOTATION).or_else(|| is_job.then(|| signed(timing.job)))?;
    let started = pod.data["status"]["startTime"].as_str()?.parse().ok()?;
    Some(until(started, takes, now))
}

fn annotated(pod: &DynamicObject, annotation: &str) -> Option<SignedDuration> {
    pod.annotations().get(annotation)?.parse().ok()
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

fn until(began: Timestamp, takes: SignedDuration, now: Timestamp) -> Duration {
    let rest = takes.saturating_sub(now.duration_since(began));
    Duration::try_from(rest).unwrap_or(Duration::ZERO)
}

/// The status of a running pod.
pub(super) fn running(pod: &DynamicObject, now: Timestamp) -> Value {
    let now = five_spot_apiserver::clock::whole_seconds(now);
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let mut status = json!({"phase": "Running", "startTime": now});
    status["conditions"] =
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition).to_vec().into();
    status["containerStatuses"] = containers(pod, true, &json!({"running": {"startedAt": now}})).into();
    status
}

/// The status of a pod whose containers have ended.
pub(super) fn ended(pod: &DynamicObject, phase: &str, now: Timestamp) -> Value {
    let now = five_spot_apiserver::clock::whole_seconds(now);
    let (code, reason) = if phase == "Succeeded" { (0, "Completed") } else { (137, "Error") };
    let state = json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}});
    let mut conditions = pod.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in &mut conditions {
        if matches!(condition["type"].as_str(), Some("Ready" | "ContainersReady")) {
            condition["status"] = "False".into();
            condition["lastTransitionTime"] = now.clone().into();
        }
    }
    json!({"phase": phase, "conditions": conditions, "containerStatuses": containers(pod, false, &state)})
}

fn containers(pod: &DynamicObject, is_ready: bool, state: &Value) -> Vec<Value> {
    let containers = pod.data["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": "", "ready": is_ready,
                "started": is_ready, "restartCount": 0, "state": state,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("a pod")
    }

    fn due(value: Value) -> Moment {
        next(&pod(value), &Timing::default(), "2026-01-01T00:00:10Z".parse().expect("an instant"))
    }

    #[test]
    fn a_pod_stops_within_its_grace() {
        let stopping = |annotations: Value, grace: i64| {
            let end = format!("2026-01-01T00:00:{:02}Z", 10 + grace);
            due(json!({
                "metadata": {
                    "name": "p", "annotations": annotations, "deletionTimestamp": end,
                    "deletionGracePeriodSeconds": grace,
                },
                "status": {"phase": "Running"},
            }))
        };
        assert_eq!(stopping(json!({}), 30), Moment::Stop(Duration::from_millis(3500)));
        assert_eq!(stopping(json!({}), 1), Moment::Stop(Duration::from_secs(1)));
        assert_eq!(
            stopping(json!({STOPS_AFTER_ANNOTATION: "20s"}), 30),
            Moment::Stop(Duration::from_secs(20))
        );
        assert_eq!(
            stopping(json!({STOPS_AFTER_ANNOTATION: "1h"}), 30),
            Moment::Stop(Duration::from_secs(30))
        );
    }

    #[test]
    fn only_work_that_ends_is_finished() {
        let status = json!({"phase": "Running", "startTime": "2026-01-01T00:00:00Z"});
        assert_eq!(due(json!({"metadata": {"name": "p"}, "status": status})), Moment::Never);
        let annotated = json!({"name": "p", "annotations": {FINISHES_AFTER_ANNOTATION: "1m"}});
        assert_eq!(
            due(json!({"metadata": annotated, "status": status})),
            Moment::Finish(Duration::from_secs(50))
        );
        let owners = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}]);
        let job = json!({"name": "p", "ownerReferences": owners});
        assert_eq!(due(json!({"metadata": job, "status": status})), Moment::Finish(Duration::from_secs(590)));
        assert_eq!(due(json!({"metadata": {"name": "p"}, "status": {"phase": "Pending"}})), Moment::Start);
    }
}
