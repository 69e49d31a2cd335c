//! Faults in the workload cluster: drains and reclaim agents.

use super::{AGENT, CORE, Case, DESK, NODE, Step, condition};
use five_spot_diagnose::doctor::{FindingId, Severity};
use serde_json::{Value, json};
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/shop/pods";
/// The pod of the agent, for a deletion that no kubelet has to finish.
const AGENT_NOW: &str = "/api/v1/namespaces/5spot-system/pods/agent-1?gracePeriodSeconds=0";
const CONFIG: &str = "/api/v1/namespaces/5spot-system/configmaps/reclaim-agent-desk-1";

pub(super) fn all() -> Vec<Case> {
    [drains(), agents(), agent_words()].into_iter().flatten().collect()
}

/// The drain began an hour ago, its deadline has passed, and this pod is still there.
fn overdue(pod: &str, reason: &str) -> Vec<Step> {
    let message =
        format!("drain deadline 2026-11-16T11:05:00Z passed: drain of node desk-1 is blocked by {pod}");
    let started = "2026-11-16T11:00:00Z";
    let drain =
        json!({"startedAt": started, "total": 1, "evicted": 0, "blocked": [{"pod": pod, "reason": reason}]});
    vec![
        Step::Merge(DESK, json!({"spec": {"schedule": {"enabled": false}}})),
        Step::Status(DESK, json!({"phase": "Error", "shutdownStartedAt": started, "drain": drain})),
        Step::Conditions(
            DESK,
            vec![
                condition("Ready", "False", "DrainTimedOut", &message),
                condition("Scheduled", "False", "Disabled", "spec.schedule.enabled is false"),
            ],
        ),
    ]
}

/// A pod on the node.
fn pod(name: &str, more: &Value) -> Step {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "nodeName": "desk-1", "terminationGracePeriodSeconds": 7200,
            "containers": [{"name": "main", "image": "example.org/app:1"}],
        },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        pod["metadata"][field] = value.clone();
    }
    Step::Create(PODS, pod)
}

fn drains() -> Vec<Case> {
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    let allowed =
        json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1});
    let web = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web";
    let mut protected =
        overdue("shop/web-0", "Cannot evict pod as it would violate the pod's disruption budget.");
    protected.extend([
        pod("web-0", &json!({})),
        Step::Create("/apis/policy/v1/namespaces/shop/poddisruptionbudgets", budget),
        Step::Status(web, allowed),
    ]);
    let mut slow = overdue("shop/web-0", "terminating; its grace period ends at 2026-11-16T14:00:00Z");
    slow.extend([pod("web-0", &json!({})), Step::Delete("/api/v1/namespaces/shop/pods/web-0")]);
    let mut held = overdue("shop/web-0", "still terminating after its grace period");
    held.extend([
        pod("web-0", &json!({"finalizers": ["example.org/hold"]})),
        Step::Delete("/api/v1/namespaces/shop/pods/web-0"),
        Step::Pass(Duration::from_hours(3)),
    ]);
    vec![
        Case::error(FindingId::PdbBlocksDrain, protected),
        Case::error(FindingId::LongGracePeriod, slow),
        Case::error(FindingId::PodStuckTerminating, held),
        Case::error(FindingId::DrainOverdue, overdue("shop/batch", "waiting for the pod to complete")),
    ]
}

fn configured(toml: &str) -> Vec<Step> {
    vec![Step::Merge(CONFIG, json!({"data": {"reclaim.toml": toml}}))]
}

fn agents() -> Vec<Case> {
    let capital = json!({"spec": {"killIfCommands": ["Java", "Xorg"]}});
    let mut mismatch = configured("match_commands = [\"Java\", \"Xorg\"]\n");
    mismatch.push(Step::Merge(DESK, capital));
    let restricted = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let refusal = json!({
        "metadata": {"name": "agent.1"}, "type": "Warning", "reason": "FailedCreate",
        "message": "pods \"agent-2\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces",
        "involvedObject": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "5spot-reclaim-agent", "namespace": "5spot-system"},
    });
    vec![
        Case::error(
            FindingId::AgentLabelMissing,
            vec![Step::Merge(NODE, json!({"metadata": {"labels": {"5spot.finos.org/reclaim-agent": null}}}))],
        ),
        Case::error(FindingId::AgentPodMissing, vec![Step::Delete(AGENT_NOW)]),
        Case::error(FindingId::AgentConfigMissing, vec![Step::Delete(CONFIG)]),
        Case::error(FindingId::AgentConfigEmpty, configured("match_commands = []\n")),
        Case::error(FindingId::AgentConfigInvalid, configured("match_commands = [\n")),
        Case::warning(FindingId::AgentCaseMismatch, mismatch),
        Case::error(
            FindingId::AgentBlockedByPodSecurity,
            vec![Step::Delete(AGENT_NOW), Step::Merge(CORE, restricted)],
        ),
        Case::error(
            FindingId::AgentBlockedByPodSecurity,
            vec![Step::Delete(AGENT_NOW), Step::Create("/api/v1/namespaces/5spot-system/events", refusal)],
        ),
    ]
}

fn agent_words() -> Vec<Case> {
    let unready = || Step::Conditions(AGENT, vec![json!({"type": "Ready", "status": "False"})]);
    let says = |line: &str| Step::Says(format!("{AGENT}/log"), vec![(200, format!("{line}\n"))]);
    let eperm =
        "Error: Subscriber::new() failed: netlink i/o: EPERM: this kernel gives process events only to";
    let refused = "Error: Subscriber::new() failed: netlink i/o: ECONNREFUSED: the process connector";
    let silent =
        "Error: no process event within 1s of starting a program; the kernel may lack CONFIG_PROC_EVENTS";
    let hidden = "only the processes of this pod are visible: set hostPID: true";
    vec![
        Case::error(FindingId::AgentNetlinkEperm, vec![says(eperm), unready()]),
        Case::new(FindingId::AgentNetlinkEperm, Severity::Info, vec![says(eperm)]),
        Case::error(FindingId::AgentNetlinkUnreachable, vec![says(refused), unready()]),
        Case::error(FindingId::AgentNoEvents, vec![says(silent), unready()]),
        Case::error(FindingId::AgentHostpidMissing, vec![says(hidden)]),
    ]
}
