//! Pods that do not start.

use super::answer::CauseFix;
use super::events::{self, Event};
use super::facts::{Filter, ObjectId, ResourceId};
use super::live::Live;
use super::node::{self, Health};
use super::walk::{Missing, Walk};
use super::words;
use crate::shell::quoted;
use jiff::SignedDuration;

/// The number of pods of a Node that are read to find out whether it runs any.
const PODS_OF_A_NODE: u32 = 200;

/// A pod younger than that is on its way.
const STARTED_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// Events that show why a pod does not start.
const TELLING: [&str; 9] = [
    "FailedScheduling",
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
    "NodeNotReady",
    "Failed",
    "BackOff",
    "InspectFailed",
];

/// Examines a pod that is not being deleted.
pub(super) fn failure<'f>(walk: &mut Walk<'f>, pod: Live<'f>, step: usize) {
    walk.note_conditions(step, pod);
    let phase = pod.text("/status/phase");
    let waiting: Vec<(&str, &str)> = waiting_containers(pod);
    if phase != "Pending" && waiting.is_empty() {
        return;
    }
    let Some(warnings) = events::warnings(walk, pod) else { return };
    let telling: Vec<Event<'_>> =
        warnings.into_iter().filter(|event| TELLING.contains(&event.reason)).collect();
    let mut evidence = events::as_evidence(&telling, walk.now);
    evidence.extend(
        waiting.iter().map(|(name, why)| words::quoted(&format!("container {name} is waiting: {why}"))),
    );
    let node = pod.text("/spec/nodeName");
    let id = pod.id();
    if node.is_empty() {
        let condition = pod.condition("PodScheduled").filter(|it| it.status != "True");
        let message = condition.map(|it| it.message).or(telling.first().map(|event| event.message));
        let (cause, needs_a_person) = match message {
            Some(message) if !message.is_empty() => {
                (format!("the scheduler finds no node for it: {message}"), true)
            }
            Some(_) | None => ("it has not been scheduled yet".to_owned(), !is_young(walk, pod)),
        };
        return walk.cause(&id, cause, evidence, Vec::new(), needs_a_person);
    }
    let node_id = ObjectId::cluster_scoped("", "Node", node);
    match walk.object(&node_id) {
        None => {}
        Some(Err(Missing::Absent)) => {
            let cause = format!("its Node {node} does not exist");
            let fix = replace(walk, pod);
            walk.blocked(&id, cause, evidence, fix);
        }
        Some(Err(Missing::Unreadable(reason))) => {
            walk.note_unread(step, &format!("its Node {node}"), reason);
            not_started(walk, pod, telling.first(), evidence);
        }
        Some(Ok(live)) => {
            walk.visit(live, "the Node it was scheduled to");
            match node::health(live) {
                Health::NotReady(_) | Health::NeverReported => {
                    evidence
                        .insert(0, words::quoted(&format!("Node {node}: {}", node::in_words(walk, live))));
                    let cause = format!("its Node {node} is not Ready");
                    let fix = replace(walk, pod);
                    walk.blocked(&id, cause, evidence, fix);
                }
                Health::Ready => on_ready_node(walk, pod, telling.first(), evidence),
            }
        }
    }
}

/// A Node can be Ready and run nothing, as in a node pool that has provisioned a faulty one.
fn on_ready_node<'f>(
    walk: &mut Walk<'f>,
    pod: Live<'f>,
    event: Option<&Event<'f>>,
    mut evidence: Vec<String>,
) {
    let node = pod.text("/spec/nodeName");
    let filter = Filter::Fields(format!("spec.nodeName={node}"));
    let listed = match walk.list(ResourceId::kind("", "Pod"), None, filter, PODS_OF_A_NODE) {
        None => return,
        Some(Err(_)) => return not_started(walk, pod, event, evidence),
        Some(Ok(listed)) => listed,
    };
    let pods: Vec<Live<'_>> = listed.items.iter().map(Live).collect();
    if pods.len() < 2 || pods.iter().any(|pod| has_started(*pod)) {
        return not_started(walk, pod, event, evidence);
    }
    evidence.insert(0, format!("none of the {} pods on Node {node} has started a container", pods.len()));
    let cause = format!("its Node {node} is Ready and runs nothing: the node is faulty");
    let mut fix = vec![CauseFix::safe_if(
        format!("{} cordon {}", walk.kubectl.0, quoted(node)),
        "new pods go to other nodes until you uncordon it",
    )];
    fix.extend(replace(walk, pod));
    walk.blocked(&ObjectId::cluster_scoped("", "Node", node), cause, evidence, fix);
}

fn not_started<'f>(walk: &mut Walk<'f>, pod: Live<'f>, event: Option<&Event<'f>>, evidence: Vec<String>) {
    let id = pod.id();
    match event {
        Some(event) => {
            let cause = format!("it does not start: {}: {}", event.reason, event.message);
            walk.cause(&id, cause, evidence, Vec::new(), true);
        }
        None if is_young(walk, pod) => walk.waiting(&id, "it is starting".to_owned(), evidence),
        None => walk.cause(
            &id,
            "it does not start, and no recent event says why".to_owned(),
            evidence,
            Vec::new(),
            true,
        ),
    }
}

fn is_young(walk: &Walk<'_>, pod: Live<'_>) -> bool {
    let created = pod.time("/metadata/creationTimestamp");
    created.is_some_and(|at| walk.now.duration_since(at) < STARTED_WITHIN)
}

fn has_started(pod: Live<'_>) -> bool {
    let is_up = |status: &serde_json::Value| {
        status["state"].get("running").is_some() || status["state"].get("terminated").is_some()
    };
    matches!(pod.text("/status/phase"), "Running" | "Succeeded" | "Failed")
        || pod.list("/status/containerStatuses").any(is_up)
}

/// The deletion of a pod. Its controller makes another one, if it has one.
fn replace<'f>(walk: &mut Walk<'f>, pod: Live<'f>) -> Vec<CauseFix> {
    let delete = walk.kubectl.on("delete", &pod.id());
    vec![if pod.owners().is_empty() {
        CauseFix::harmful(delete, "it has no controller that creates another one")
    } else {
        CauseFix::safe_if(delete, "its controller creates another one, which may run on another node")
    }]
}

/// The containers that wait for something that takes longer than their creation.
fn waiting_containers(pod: Live<'_>) -> Vec<(&str, &str)> {
    let statuses = pod.list("/status/initContainerStatuses").chain(pod.list("/status/containerStatuses"));
    let waiting = statuses.filter_map(|status| {
        let status = Live(status);
        let reason = status.text("/state/waiting/reason");
        let is_normal = matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        (!is_normal).then(|| {
            let message = status.text("/state/waiting/message");
            (status.text("/name"), if message.is_empty() { reason } else { message })
        })
    });
    waiting.collect()
}
