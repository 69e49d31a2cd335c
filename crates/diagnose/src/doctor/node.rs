//! The Nodes of machines.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::machine::Case;
use crate::shell::object as target;
use five_spot_api::names;

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let Some(ready) = case.condition("MachineReady") else { return };
    let (space, machine) = (case.machine.namespace(), names::machine(case.machine.name()));
    let node = case.machine.status.node_ref.as_ref().map_or("", |node| node.name.as_str());
    match ready.reason {
        "NodeLost" if ready.status == "Unknown" => findings.push(
            case.find(FindingId::NodeLost, Severity::Warning, "the node may be gone: the controller is not certain")
                .cause(
                    "The cluster that the kubeconfig leads to has no Node for this Machine. Either the kubeconfig may \
                     not read the namespace kube-system, by which the controller identifies the cluster, or Cluster \
                     API reports the node as healthy, perhaps because the kubeconfig leads to another cluster. The \
                     controller does not replace the Machine until it is certain.",
                )
                .evidence(ready.words())
                .fix(
                    Fix::command("kubectl get namespace kube-system")
                        .in_workload_cluster("with the kubeconfig of the controller: it must be allowed"),
                )
                .fix(
                    Fix::command("kubectl apply -k deploy/rbac-nodes/").in_workload_cluster(
                        "if it is not: grants `get` on namespaces; bind it to the identity of the kubeconfig",
                    ),
                )
                .fix(
                    Fix::command(format!(
                        "kubectl describe machines.cluster.x-k8s.io {machine} -n {space}"
                    ))
                    .because("if it is: the condition NodeHealthy shows what Cluster API sees"),
                ),
        ),
        "NodeLost" => findings.push(
            case.find(FindingId::NodeLost, Severity::Error, "the node had joined and is gone")
                .cause(
                    "The machine was switched off, its kubelet has stopped, or someone has deleted the Node.",
                )
                .evidence(ready.words())
                .fix(Fix::note(
                    "start the machine and its kubelet; otherwise the Machine is replaced after joinTimeout",
                ))
                .fix(Fix::command(format!(
                    "kubectl describe machines.cluster.x-k8s.io {machine} -n {space}"
                ))),
        ),
        "NodeLeftBehind" => findings.push(
            case.find(
                FindingId::NodeLeftBehind,
                Severity::Warning,
                format!("node {node} still exists although its Machine is gone"),
            )
            .cause("Cluster API has deleted the Machine but not the Node.")
            .evidence(ready.words())
            .fix(
                Fix::command(format!("kubectl delete {}", target("node", node)))
                    .in_workload_cluster("once the owner has the machine back; pods on it are lost")
                    .risky(),
            ),
        ),
        _ => {}
    }
}
