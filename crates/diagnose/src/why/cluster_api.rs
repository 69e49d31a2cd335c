//! Machines and Clusters of Cluster API, with its pauses, hooks, drains and provider objects.

use super::answer::CauseFix;
use super::facts::{Filter, ObjectId, ResourceId};

use super::live::{Live, group_of};
use super::walk::Walk;
use super::words;
use five_spot_api::names::{annotation, label};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const GROUP: &str = "cluster.x-k8s.io";

/// The annotations that hold up a deletion, by the phase in which they do.
const HOOKS: [(&str, &str); 2] = [
    ("pre-drain.delete.hook.machine.cluster.x-k8s.io/", "before the drain"),
    ("pre-terminate.delete.hook.machine.cluster.x-k8s.io/", "before the infrastructure is deleted"),
];

/// The time that a drain without a limit gets before it counts as blocked. Cluster API looks every 20 s.
const DRAINED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The number of Machines of a Cluster that are examined.
const MACHINES: u32 = 20;

/// Examines a Machine that is being deleted. Returns true if something explains its finalizer.
pub(super) fn machine_deletion<'f>(walk: &mut Walk<'f>, machine: Live<'f>, step: usize) -> bool {
    if let Some(deleting) = machine.condition("Deleting") {
        walk.note(step, words::condition(&deleting));
    }
    if pause(walk, machine) || hooks(walk, machine) {
        return true;
    }
    let reason = machine.condition("Deleting").map_or("", |condition| condition.reason);
    match reason {
        "DrainingNode" => drain(walk, machine),
        "WaitingForVolumeDetach" => volume_detach(walk, machine),
        _ => provider_objects(walk, machine),
    }
}

/// Adds the cause that Cluster API is paused for an object. Returns true if it is, or while that is unknown.
pub(super) fn pause<'f>(walk: &mut Walk<'f>, object: Live<'f>) -> bool {
    if !object.group().ends_with(GROUP) {
        return false;
    }
    let id = object.id();
    let goes_on = "Cluster API continues with everything that the pause has held back";
    if object.has_annotation(annotation::CAPI_PAUSED) {
        let cause = format!("Cluster API is paused for it by the annotation {}", annotation::CAPI_PAUSED);
        let command = walk.kubectl.remove_annotation(&id, annotation::CAPI_PAUSED);
        walk.blocked(&id, cause, Vec::new(), vec![CauseFix::safe_if(command, goes_on)]);
        return true;
    }
    let Some(name) = cluster_name(object) else { return false };
    let cluster = ObjectId::namespaced(GROUP, "Cluster", object.namespace(), name);
    match walk.object(&cluster) {
        None => true,
        Some(Ok(live)) if live.0.pointer("/spec/paused") == Some(&Value::Bool(true)) => {
            walk.step(&cluster, "its Cluster", vec!["spec.paused: true".to_owned()]);
            let cause = "Cluster API is paused for everything in this Cluster by spec.paused".to_owned();
            let command = walk.kubectl.merge(&cluster, &json!({"spec": {"paused": false}}));
            walk.blocked(&cluster, cause, Vec::new(), vec![CauseFix::safe_if(command, goes_on)]);
            true
        }
        Some(Ok(_) | Err(_)) => false,
    }
}

/// The Cluster that an object belongs to.
fn cluster_name(object: Live<'_>) -> Option<&str> {
    let labels = object.0.pointer("/metadata/labels");
    let labelled = labels.and_then(|labels| labels.get(label::CLUSTER_NAME)).and_then(Value::as_str);
    labelled.or_else(|| Some(object.text("/spec/clusterName"))).filter(|name| !name.is_empty())
}

fn hooks<'f>(walk: &mut Walk<'f>, machine: Live<'f>) -> bool {
    let id = machine.id();
    let mut found = false;
    for (prefix, phase) in HOOKS {
        for (key, owner) in machine.annotations().filter(|(key, _)| key.starts_with(prefix)) {
            found = true;
            let owner = if owner.is_empty() { "its owner".to_owned() } else { words::quoted(owner) };
            let cause = format!("a hook waits {phase}: {owner} has to remove the annotation {key}");
            let command = walk.kubectl.remove_annotation(&id, key);
            let warning =
                format!("whatever {owner} does {phase} is skipped, and what it would have cleaned up stays");
            walk.blocked(&id, cause, Vec::new(), vec![CauseFix::harmful(command, warning)]);
        }
    }
    found
}

fn drain<'f>(walk: &mut Walk<'f>, machine: Live<'f>) -> bool {
    let id = machine.id();
    let condition = machine.condition("Deleting");
    let message = condition.map_or("", |condition| condition.message);
    let started =
        machine.time("/status/deletion/nodeDrainStartTime").or_else(|| condition.and_then(|it| it.since));
    let evidence: Vec<String> =
        message.lines().filter(|line| !line.trim().is_empty()).take(10).map(words::quoted).collect();
    let ends = started.zip(drain_timeout(machine)).and_then(|(at, limit)| at.checked_add(limit).ok());
    if is_in_time(walk.now, started, ends) {
        let until = ends.map(|at| format!(", at most until {at}")).unwrap_or_default();
        walk.waiting(&id, format!("Cluster API drains its node{until}"), evidence);
        return true;
    }
    let cause = "Cluster API cannot drain its node: see which pods block, and why".to_owned();
    let command = walk.kubectl.annotate(&id, annotation::EXCLUDE_NODE_DRAINING, "true");
    let warning =
        "the pods on the node end with it, without an eviction: disruption budgets are not respected";
    walk.blocked(&id, cause, evidence, vec![CauseFix::harmful(command, warning)]);
    true
}

fn is_in_time(now: Timestamp, started: Option<Timestamp>, ends: Option<Timestamp>) -> bool {
    match (started, ends) {
        (_, Some(ends)) => now < ends,
        (Some(started), None) => now.duration_since(started) < DRAINED_WITHIN,
        (None, None) => false,
    }
}

/// The limit of a drain in either version of the API; zero means none.
fn drain_timeout(machine: Live<'_>) -> Option<SignedDuration> {
    let seconds = machine.0.pointer("/spec/deletion/nodeDrainTimeoutSeconds").and_then(Value::as_i64);
    let old = || machine.text("/spec/nodeDrainTimeout").parse::<SignedDuration>().ok();
    seconds.map(SignedDuration::from_secs).or_else(old).filter(|limit| !limit.is_zero())
}

fn volume_detach<'f>(walk: &mut Walk<'f>, machine: Live<'f>) -> bool {
    let id = machine.id();
    let condition = machine.condition("Deleting");
    let evidence: Vec<String> = condition.iter().map(words::condition).collect();
    let since =
        condition.and_then(|it| it.since).map_or(SignedDuration::ZERO, |at| walk.now.duration_since(at));
    if since < DRAINED_WITHIN {
        walk.waiting(
            &id,
            "Cluster API waits until the volumes of its node are detached".to_owned(),
            evidence,
        );
        return true;
    }
    let cause = format!("the volumes of its node have not been detached for {}", words::duration(since));
    let command = walk.kubectl.annotate(&id, annotation::EXCLUDE_WAIT_FOR_VOLUME_DETACH, "true");
    let warning =
        "volumes that are still attached may be damaged if the machine is removed while it writes to them";
    walk.blocked(&id, cause, evidence, vec![CauseFix::harmful(command, warning)]);
    true
}

/// Examines the infrastructure and bootstrap objects of a Machine.
fn provider_objects<'f>(walk: &mut Walk<'f>, machine: Live<'f>) -> bool {
    let mut found = false;
    for (path, relation) in [
        ("/spec/infrastructureRef", "its infrastructure object"),
        ("/spec/bootstrap/configRef", "its bootstrap object"),
    ] {
        let Some(id) = reference(machine, path) else { continue };
        match walk.object(&id) {
            None => found = true,
            Some(Ok(object)) if object.is_deleting() => found |= walk.visit(object, relation),
            Some(Ok(_) | Err(_)) => {}
        }
    }
    found
}

/// A reference in either version of the API, always within the namespace.
fn reference(object: Live<'_>, path: &str) -> Option<ObjectId> {
    let reference = Live(object.0.pointer(path)?);
    let group = match reference.text("/apiGroup") {
        "" => group_of(reference.text("/apiVersion")),
        group => group,
    };
    let (kind, name) = (reference.text("/kind"), reference.text("/name"));
    (!kind.is_empty() && !name.is_empty())
        .then(|| ObjectId::namespaced(group, kind, object.namespace(), name))
}

/// Examines a Cluster that is being deleted. Returns true if something explains its finalizer.
pub(super) fn cluster_deletion<'f>(walk: &mut Walk<'f>, cluster: Live<'f>, step: usize) -> bool {
    if let Some(deleting) = cluster.condition("Deleting") {
        walk.note(step, words::condition(&deleting));
    }
    if cluster.0.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        let cause = "Cluster API is paused for everything in this Cluster by spec.paused".to_owned();
        let command = walk.kubectl.merge(&cluster.id(), &json!({"spec": {"paused": false}}));
        let fix =
            CauseFix::safe_if(command, "Cluster API continues with everything that the pause has held back");
        walk.blocked(&cluster.id(), cause, Vec::new(), vec![fix]);
        return true;
    }
    if pause(walk, cluster) {
        return true;
    }
    let mut found = machines(walk, cluster, step);
    for (path, relation) in [
        ("/spec/controlPlaneRef", "its control plane"),
        ("/spec/infrastructureRef", "its infrastructure object"),
    ] {
        let Some(id) = reference(cluster, path) else { continue };
        match walk.object(&id) {
            None => found = true,
            Some(Ok(object)) if object.is_deleting() => found |= walk.visit(object, relation),
            Some(Ok(_) | Err(_)) => {}
        }
    }
    found
}

fn machines<'f>(walk: &mut Walk<'f>, cluster: Live<'f>, step: usize) -> bool {
    let filter = Filter::Labels(format!("{}={}", label::CLUSTER_NAME, cluster.name()));
    let listed =
        match walk.list(ResourceId::kind(GROUP, "Machine"), Some(cluster.namespace()), filter, MACHINES) {
            None => return true,
            Some(Err(reason)) => {
                walk.note_unread(step, "its Machines", reason);
                return false;
            }
            Some(Ok(listed)) => listed,
        };
    let count = listed.more + listed.items.len() as u64;
    if count > 0 {
        walk.note(step, format!("remaining: {}", words::count(count, "Machine")));
    }
    let mut found = false;
    for machine in listed.items.iter().map(Live).filter(|machine| machine.is_deleting()) {
        found |= walk.visit(machine, "a Machine of the Cluster");
    }
    found
}
