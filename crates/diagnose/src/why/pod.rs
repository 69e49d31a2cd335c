//! Pods that are being deleted. Only the kubelet of its node can confirm that a pod has ended.

use super::answer::CauseFix;
use super::facts::ObjectId;
use super::live::Live;
use super::node::{self, Health};
use super::walk::{Missing, Walk};
use super::{events, finalizer, words};
use jiff::SignedDuration;

/// The time that a kubelet may take after the grace period, to remove volumes and sandbox and to report.
const KUBELET_SLACK: SignedDuration = SignedDuration::from_secs(30);

/// The time after which pods without a Node should have been removed. The pod garbage collector waits 40 s, and looks every 20 s.
const COLLECTED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// The warning that `kubectl` prints for a forced deletion, and its meaning for volumes.
const FORCED: &str = "Immediate deletion does not wait for confirmation that the running resource has been terminated. The \
                      resource may continue to run on the cluster indefinitely.";

/// Examines a pod that is being deleted.
pub(super) fn deletion<'f>(walk: &mut Walk<'f>, pod: Live<'f>, step: usize) {
    owners(walk, pod, step);
    if !pod.finalizers().is_empty() {
        return finalizer::deletion(walk, pod, step);
    }
    let overdue = walk.overdue(pod);
    if overdue < SignedDuration::ZERO {
        let cause = format!("its grace period ends in {}", words::duration(-overdue));
        return walk.waiting(&pod.id(), cause, Vec::new());
    }
    let node = pod.text("/spec/nodeName");
    if node.is_empty() {
        return unscheduled(walk, pod, overdue);
    }
    let id = ObjectId::cluster_scoped("", "Node", node);
    match walk.object(&id) {
        None => {}
        Some(Err(Missing::Absent)) => node_gone(walk, pod, &id, overdue),
        Some(Err(Missing::Unreadable(reason))) => {
            walk.note_unread(step, &format!("its Node {node}"), reason);
            kubelet(walk, pod, None, overdue);
        }
        Some(Ok(node)) => {
            walk.visit(node, "the Node it runs on");
            match node::health(node) {
                Health::Ready => kubelet(walk, pod, Some(node), overdue),
                Health::NotReady(_) | Health::NeverReported => dead_node(walk, pod, node),
            }
        }
    }
}

/// Notes the owners that do not exist any more.
fn owners<'f>(walk: &mut Walk<'f>, pod: Live<'f>, step: usize) {
    for owner in pod.owners().into_iter().take(3) {
        match walk.object(&owner.id(pod.namespace())) {
            Some(Ok(live)) if live.uid() == owner.uid => {
                walk.note(step, words::quoted(&format!("owned by {} {}", owner.kind, owner.name)));
            }
            Some(Ok(_)) => {
                let evidence = format!(
                    "its owner {} {} was deleted; one of that name exists again",
                    owner.kind, owner.name
                );
                walk.note(step, words::quoted(&evidence));
            }
            Some(Err(Missing::Absent)) => {
                let evidence = format!("its owner {} {} does not exist any more", owner.kind, owner.name);
                walk.note(step, words::quoted(&evidence));
            }
            Some(Err(Missing::Unreadable(reason))) => {
                walk.note_unread(step, &format!("its owner {} {}", owner.kind, owner.name), reason);
            }
            None => {}
        }
    }
}

/// A pod that no node has ever run.
fn unscheduled<'f>(walk: &mut Walk<'f>, pod: Live<'f>, overdue: SignedDuration) {
    let id = pod.id();
    let cause =
        "it was never scheduled, so the pod garbage collector (kube-controller-manager) has to remove it"
            .to_owned();
    if overdue < COLLECTED_WITHIN {
        return walk.waiting(&id, cause, Vec::new());
    }
    let fix = CauseFix::safe_if(force(walk, &id), "none of its containers has ever run");
    walk.blocked(&id, cause, vec![format!("overdue for {}", words::duration(overdue))], vec![fix]);
}

fn node_gone<'f>(walk: &mut Walk<'f>, pod: Live<'f>, node: &ObjectId, overdue: SignedDuration) {
    let id = pod.id();
    walk.step(node, "the Node it ran on", vec!["it does not exist any more".to_owned()]);
    let evidence = vec![words::quoted(&format!("Node {} does not exist any more", node.name))];
    let cause = format!(
        "its Node {} is gone, so the pod garbage collector (kube-controller-manager) has to remove it",
        node.name
    );
    if overdue < COLLECTED_WITHIN {
        return walk.waiting(&id, cause, evidence);
    }
    let warning = format!("{FORCED} Check that the machine behind {} is off or reset.", node.name);
    let fix = CauseFix::harmful(force(walk, &id), warning);
    walk.blocked(&id, cause, evidence, vec![fix]);
}

/// A pod on a Node whose kubelet does not report.
fn dead_node<'f>(walk: &mut Walk<'f>, pod: Live<'f>, node: Live<'f>) {
    let (id, name) = (pod.id(), node.name());
    let cause = format!(
        "it runs on Node {name}, which is not Ready: only the kubelet there can confirm that the pod has ended. If you can, \
         start that kubelet again, and the pod ends by itself"
    );
    let mut evidence = vec![words::quoted(&format!("Node {name}: {}", node::in_words(walk, node)))];
    evidence.extend(grace_over(walk, pod));
    evidence.extend(containers(pod));
    let warning = format!(
        "{FORCED} Make sure first that the machine behind {name} is off or cut off from its storage: otherwise two pods may write \
         to one volume."
    );
    let taint = format!(
        "{} taint node {name} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        walk.kubectl.0
    );
    let all_pods = format!(
        "only if the machine behind {name} is off: every pod on it is removed by force and its volumes are detached; remove the \
         taint before the machine is used again"
    );
    let fix = vec![CauseFix::harmful(force(walk, &id), warning), CauseFix::harmful(taint, all_pods)];
    walk.blocked(&id, cause, evidence, fix);
}

/// A pod on a Node that is Ready, or that cannot be read.
fn kubelet<'f>(walk: &mut Walk<'f>, pod: Live<'f>, node: Option<Live<'f>>, overdue: SignedDuration) {
    let id = pod.id();
    let name = pod.text("/spec/nodeName");
    if overdue < KUBELET_SLACK {
        let cause = format!("its grace period is over, and the kubelet of {name} is removing it");
        return walk.waiting(&id, cause, Vec::new());
    }
    let Some(warnings) = events::warnings(walk, pod) else { return };
    let mut evidence = events::as_evidence(&warnings, walk.now);
    evidence.extend(grace_over(walk, pod));
    evidence.extend(containers(pod));
    if node.is_some() {
        evidence.push(format!("Node {name} is Ready"));
    }
    let cause = format!(
        "the kubelet of {name} has not removed it {} after its grace period: a process that cannot be killed, a volume that \
         cannot be unmounted or a broken container runtime; look at the kubelet's log",
        words::duration(overdue)
    );
    let warning = format!("{FORCED} Its volumes may stay mounted on {name}.");
    let fix = vec![CauseFix::harmful(force(walk, &id), warning)];
    walk.blocked(&id, cause, evidence, fix);
}

fn grace_over(walk: &Walk<'_>, pod: Live<'_>) -> Option<String> {
    Some(format!("its grace period ended {}", words::ago(pod.deletion_time()?, walk.now)))
}

/// The containers that have not ended, with their states.
fn containers(pod: Live<'_>) -> Option<String> {
    let states: Vec<String> = pod.list("/status/containerStatuses").filter_map(container_state).collect();
    (!states.is_empty()).then(|| words::quoted(&format!("containers: {}", states.join(", "))))
}

fn container_state(status: &serde_json::Value) -> Option<String> {
    let status = Live(status);
    let (state, details) = status.0.get("state")?.as_object()?.iter().next()?;
    let reason = details["reason"].as_str().map(|reason| format!(" ({reason})")).unwrap_or_default();
    (state != "terminated").then(|| format!("{} {state}{reason}", status.text("/name")))
}

fn force(walk: &Walk<'_>, id: &ObjectId) -> String {
    format!("{} --grace-period=0 --force", walk.kubectl.on("delete", id))
}
