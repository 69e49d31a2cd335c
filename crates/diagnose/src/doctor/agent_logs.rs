//! The reclaim agents by their own words: pods and logs.

use super::agent::{poll, restarts};
use super::facts::{AgentPod, DoctorFacts, WorkloadKey};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, name, text};
use super::logs::{LogLine, last_with};
use crate::object::ReportedObject;
use five_spot_api::names::SYSTEM_NAMESPACE;

pub(super) fn judge(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    for (key, workload) in &facts.workloads {
        for agent in workload.agents.iter().flatten() {
            findings.extend(of_agent(key, agent));
        }
    }
}

fn of_agent(key: &WorkloadKey, agent: &AgentPod) -> Option<Finding> {
    let object = ReportedObject::namespaced("Pod", SYSTEM_NAMESPACE, name(&agent.pod));
    let node = text(&agent.pod, "/spec/nodeName");
    let cluster = key.secret.as_deref().unwrap_or("the management cluster");
    let place = format!("on node {node} of {cluster} (namespace {})", key.namespace);
    let is_ready = condition(&agent.pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    // With `auto` the agent polls instead, and works all the same.
    let severity = if is_ready { Severity::Info } else { Severity::Error };
    let found = |id, severity, title: &str, line: Option<&LogLine>| {
        Finding::new(id, severity, object.clone(), title)
            .evidence(place.clone())
            .evidence_of(restarts(&agent.pod))
            .evidence_of(line.map(LogLine::words))
    };
    let hidden = last_with(&agent.log, "only the processes of this pod are visible");
    if hidden.is_some() || agent.pod["spec"]["hostPID"] != true {
        let title = "the reclaim agent sees only the processes of its own pod";
        return Some(
            found(FindingId::AgentHostpidMissing, Severity::Error, title, hidden)
                .cause("The pod lacks hostPID: no program of the owner can match.")
                .evidence(format!("spec.hostPID is {}", agent.pod["spec"]["hostPID"]))
                .fix(
                    Fix::command("kubectl apply -k deploy/node-agent/")
                        .in_workload_cluster("restores hostPID: true of the DaemonSet"),
                ),
        );
    }
    if let Some(line) = last_with(&agent.log, "netlink i/o: EPERM") {
        let title = "the kernel refuses process events to the reclaim agent";
        return Some(
            found(FindingId::AgentNetlinkEperm, severity, title, Some(line))
                .cause("The container lacks CAP_NET_ADMIN, which kernels before 6.6 require.")
                .fix(
                    Fix::command("kubectl apply -k deploy/node-agent/")
                        .in_workload_cluster("restores NET_ADMIN in securityContext.capabilities.add"),
                )
                .fix(poll()),
        );
    }
    let refused = last_with(&agent.log, "netlink i/o: ECONNREFUSED");
    if let Some(line) = refused {
        let title = "the reclaim agent cannot receive the process events of the host";
        return Some(
            found(FindingId::AgentNetlinkUnreachable, severity, title, Some(line))
                .cause(
                    "The pod lacks hostNetwork: the kernel sends process events only to the network \
                     namespace of the host.",
                )
                .evidence(format!("spec.hostNetwork is {}", agent.pod["spec"]["hostNetwork"]))
                .fix(
                    Fix::command("kubectl apply -k deploy/node-agent/")
                        .in_workload_cluster("restores hostNetwork: true of the DaemonSet"),
                )
                .fix(poll()),
        );
    }
    let silent = ["no process event within", "did not confirm the subscription", "EPROTONOSUPPORT"]
        .into_iter()
        .find_map(|sign| last_with(&agent.log, sign))?;
    let title = "the kernel sends no process events to the reclaim agent";
    Some(
        found(FindingId::AgentNoEvents, severity, title, Some(silent))
            .cause("The kernel was built without CONFIG_PROC_EVENTS.")
            .fix(poll()),
    )
}
