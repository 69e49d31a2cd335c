//! The taints of Nodes, by the reason of the condition `NodeTainted`.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, text, words};
use super::machine::Case;
use crate::shell::{object as target, quoted};
use jiff::SignedDuration;

/// The time that a Node which is named may take to appear, and a Node that is there to become Ready.
const WAIT_LIMIT: SignedDuration = SignedDuration::from_mins(2);

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let Some(tainted) = case.condition("NodeTainted").filter(|tainted| tainted.status != "True") else {
        return;
    };
    // A machine that nobody wants has no Node to wait for.
    let is_wanted = case.condition("Scheduled").is_some_and(|scheduled| scheduled.status == "True");
    if case.capi.is_none() && !is_wanted {
        return;
    }
    let node = case.node_name();
    let is_slow = case.facts.since(tainted.since) > WAIT_LIMIT;
    let found = |id, severity, title: &str| case.find(id, severity, title).evidence(tainted.words());
    let described =
        || Fix::command(format!("kubectl describe {}", target("node", node))).in_workload_cluster("");
    match tainted.reason {
        "NoNodeYet" => {
            let named = case.capi.map(|capi| text(capi, "/status/nodeRef/name")).unwrap_or_default();
            let is_stuck = is_slow && !named.is_empty();
            let severity = if is_stuck { Severity::Warning } else { Severity::Info };
            let machine = five_spot_api::names::machine(case.machine.name());
            findings.push(
                found(FindingId::TaintNoNodeYet, severity, "the taints are not set until the Node exists")
                    .cause(if is_stuck {
                        "Cluster API refers to a Node that does not exist in the workload cluster."
                    } else {
                        "The Node has not joined yet. The controller sets the taints when it has."
                    })
                    .evidence_of((!named.is_empty()).then(|| format!("Machine {machine}: status.nodeRef is {named}")))
                    .fix(Fix::command(format!(
                        "kubectl get machines.cluster.x-k8s.io {machine} -n {} -o jsonpath='{{.status.nodeRef}}'",
                        case.machine.namespace()
                    ))),
            );
        }
        "NodeNotReady" => findings.push(
            found(
                FindingId::TaintNodeNotReady,
                if is_slow { Severity::Warning } else { Severity::Info },
                "the taints are not set until the Node is Ready",
            )
            .cause("The kubelet has not registered, or the network of the node (CNI) is not up.")
            .evidence_of(case.node.and_then(|node| condition(node, "Ready")).map(words))
            .fix(described()),
        ),
        "TaintOwnershipConflict" => findings.push(
            found(FindingId::TaintConflict, Severity::Warning, "another client has set the same taint")
                .cause("5-Spot never overwrites a taint that it did not set.")
                .evidence_of(case.node.map(|node| {
                    format!("node {}: taints {}", text(node, "/metadata/name"), node["spec"]["taints"])
                }))
                .fix(
                    Fix::command(case.kubectl("edit"))
                        .because("change key or effect of the entry in spec.nodeTaints"),
                )
                .fix(
                    Fix::command(format!(
                        "kubectl taint {} {}",
                        target("nodes", node),
                        conflicts(tainted.message)
                    ))
                    .in_workload_cluster("removes the other taint; 5-Spot then sets its own")
                    .risky(),
                ),
        ),
        "PatchFailed" => findings.push(
            found(FindingId::TaintPatchFailed, Severity::Error, "the taints could not be written")
                .cause("The API server of the workload cluster refuses the patch of the Node.")
                .evidence_of(case.log("taint"))
                .fix(
                    Fix::command("kubectl apply -k deploy/rbac-nodes/")
                        .in_workload_cluster("grants `patch` on nodes to the identity of the kubeconfig"),
                ),
        ),
        _ => {}
    }
}

/// The taints in the message of a conflict, as `kubectl taint` removes them: `key:effect-`.
fn conflicts(message: &str) -> String {
    let taints = message.split_once("did not set: ").map_or("", |(_, rest)| rest);
    let taints = taints.split_once(';').map_or(taints, |(taints, _)| taints);
    let removed: Vec<String> = taints
        .split(", ")
        .filter(|taint| !taint.is_empty())
        .map(|taint| quoted(&format!("{taint}-")))
        .collect();
    removed.join(" ")
}
