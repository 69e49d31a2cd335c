//! Volume claims and volumes, which are protected while something uses them.

use super::answer::CauseFix;
use super::events;
use super::facts::{Filter, ObjectId, ResourceId};
use super::live::Live;
use super::walk::Walk;
use super::words;

/// The number of pods of a namespace that are searched for users of a claim.
const PODS: u32 = 5000;

/// The number of users that are examined.
const USERS: usize = 5;

/// Examines the pods that use a claim, and its volume. Returns true if one of the pods explains the finalizer.
pub(super) fn users<'f>(walk: &mut Walk<'f>, claim: Live<'f>, step: usize) -> bool {
    let volume = claim.text("/spec/volumeName");
    if !volume.is_empty() {
        walk.visit_id(
            &ObjectId::cluster_scoped("", "PersistentVolume", volume),
            "the volume that is bound to the claim",
        );
    }
    let listed = match walk.list(ResourceId::kind("", "Pod"), Some(claim.namespace()), Filter::All, PODS) {
        None => return true,
        Some(Err(reason)) => {
            walk.note_unread(step, "the pods that may use it", reason);
            return false;
        }
        Some(Ok(listed)) => listed,
    };
    if listed.more > 0 {
        walk.note(step, format!("only the first {} pods of the namespace were searched", listed.items.len()));
    }
    let users: Vec<Live<'f>> =
        listed.items.iter().map(Live).filter(|pod| uses(*pod, claim.name()) && !has_ended(*pod)).collect();
    for pod in users.iter().take(USERS) {
        if pod.is_deleting() {
            walk.visit(*pod, "uses the claim");
        } else {
            in_use(walk, *pod, claim);
        }
    }
    if users.len() > USERS {
        walk.note(step, format!("{} more use the claim", words::count((users.len() - USERS) as u64, "pod")));
    }
    !users.is_empty()
}

/// A pod that nobody has deleted uses the claim.
fn in_use<'f>(walk: &mut Walk<'f>, pod: Live<'f>, claim: Live<'f>) {
    let id = pod.id();
    walk.step(
        &id,
        "uses the claim",
        vec![format!("phase {}, not being deleted", words::quoted(pod.text("/status/phase")))],
    );
    let owner = pod.owners().into_iter().next();
    let warning = match &owner {
        Some(owner) => format!(
            "the pod ends, and {} {} creates another one that uses the claim again: scale it down or delete \
             it first",
            owner.kind, owner.name
        ),
        None => "the pod ends, and nothing creates another one".to_owned(),
    };
    let cause = format!("it still uses the volume claim {}, which is kept until no pod does", claim.name());
    let fix = vec![CauseFix::harmful(walk.kubectl.on("delete", &id), warning)];
    let evidence = vec![words::quoted(&format!("a volume of the pod names the claim {}", claim.name()))];
    walk.blocked(&id, cause, evidence, fix);
}

fn uses(pod: Live<'_>, claim: &str) -> bool {
    pod.list("/spec/volumes").any(|volume| {
        let volume = Live(volume);
        // The claim of an ephemeral volume is called after the pod and the volume.
        let is_ephemeral = volume.0.get("ephemeral").is_some()
            && claim.strip_prefix(pod.name()).and_then(|it| it.strip_prefix('-'))
                == Some(volume.text("/name"));
        volume.text("/persistentVolumeClaim/claimName") == claim || is_ephemeral
    })
}

fn has_ended(pod: Live<'_>) -> bool {
    matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
}

/// Examines the claim that a volume is bound to. Returns true if there is one.
pub(super) fn claim<'f>(walk: &mut Walk<'f>, volume: Live<'f>, step: usize) -> bool {
    let (namespace, name) = (volume.text("/spec/claimRef/namespace"), volume.text("/spec/claimRef/name"));
    walk.note(step, format!("phase {}", words::quoted(volume.text("/status/phase"))));
    if name.is_empty() || volume.text("/status/phase") != "Bound" {
        return false;
    }
    let id = ObjectId::namespaced("", "PersistentVolumeClaim", namespace, name);
    if walk.has_seen(&id) {
        return true;
    }
    match walk.object(&id) {
        None => true,
        Some(Err(_)) => false,
        Some(Ok(claim)) if claim.is_deleting() => walk.visit(claim, "the claim that is bound to the volume"),
        Some(Ok(claim)) if going_namespace(walk, claim) => true,
        Some(Ok(claim)) => {
            walk.step(
                &claim.id(),
                "the claim that is bound to the volume",
                vec!["not being deleted".to_owned()],
            );
            let cause = "it is bound to the volume, which is kept until the claim is deleted".to_owned();
            let warning = "applications that use the claim lose their data, unless the reclaim policy of the volume is Retain";
            let fix = vec![CauseFix::harmful(walk.kubectl.on("delete", &id), warning)];
            walk.blocked(&id, cause, Vec::new(), fix);
            true
        }
    }
}

/// Examines the namespace of a claim, if that is being deleted: it deletes the claim after its pods. Returns true if it is, or while
/// that is unknown.
fn going_namespace<'f>(walk: &mut Walk<'f>, claim: Live<'f>) -> bool {
    let id = ObjectId::cluster_scoped("", "Namespace", claim.namespace());
    match walk.object(&id) {
        None => true,
        Some(Ok(namespace)) if namespace.is_deleting() => {
            let evidence = vec!["not being deleted yet; its namespace is".to_owned()];
            walk.step(&claim.id(), "the claim that is bound to the volume", evidence);
            walk.visit(namespace, "the namespace of the claim")
        }
        Some(Ok(_) | Err(_)) => false,
    }
}

/// Examines a claim that is not being deleted and may not be bound.
pub(super) fn binding<'f>(walk: &mut Walk<'f>, claim: Live<'f>, step: usize) {
    let phase = claim.text("/status/phase");
    walk.note(step, format!("phase {}", words::quoted(phase)));
    if phase == "Bound" || phase.is_empty() {
        return;
    }
    let Some(warnings) = events::warnings(walk, claim) else { return };
    let cause = match warnings.first() {
        Some(event) => format!("it is not bound: {}: {}", event.reason, event.message),
        None => format!("it is {phase}, and no recent event says why"),
    };
    let evidence = events::as_evidence(&warnings, walk.now);
    walk.cause(&claim.id(), cause, evidence, Vec::new(), true);
}
