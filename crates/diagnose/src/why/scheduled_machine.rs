//! `ScheduledMachines`: their deletion drains and removes the machine first.

use super::answer::CauseFix;
use super::controllers;
use super::facts::ObjectId;
use super::finalizer;
use super::finalizer_table::Controller;
use super::live::{Condition, Live};
use super::walk::{Missing, Walk};
use super::words;
use five_spot_api::names::{self, annotation};

/// Examines a `ScheduledMachine` that is being deleted. Returns true if something explains its finalizer.
pub(super) fn deletion<'f>(walk: &mut Walk<'f>, object: Live<'f>, step: usize) -> bool {
    walk.note(
        step,
        words::quoted(&format!("phase {}: {}", object.text("/status/phase"), object.text("/status/message"))),
    );
    if let Some((_, value)) = object.annotations().find(|(key, _)| *key == annotation::PAUSED) {
        let cause = format!("5-Spot is paused for it by the annotation {}", annotation::PAUSED);
        let fix = CauseFix::safe_if(
            walk.kubectl.remove_annotation(&object.id(), annotation::PAUSED),
            "5-Spot drains the node and removes the machine",
        );
        walk.blocked(&object.id(), cause, vec![words::quoted(&format!("its value is {value:?}"))], vec![fix]);
        return true;
    }
    let Some((is_away, evidence)) = finalizer::life_evidence(walk, Controller::FiveSpot) else { return true };
    if is_away {
        // Nothing else matters until it runs.
        return false;
    }
    if let Some(paused) = held_back(object).filter(|it| it.reason == "NamespaceAnnotation") {
        namespace_pause(walk, object, &paused);
        return true;
    }
    let name = match object.text("/status/machineRef/name") {
        "" => names::machine(object.name()),
        name => name.to_owned(),
    };
    let id = ObjectId::namespaced("cluster.x-k8s.io", "Machine", object.namespace(), &name);
    match walk.object(&id) {
        None => true,
        Some(Ok(machine)) if machine.is_deleting() => walk.visit(machine, "its Machine"),
        Some(Ok(_)) => draining(walk, object, evidence),
        Some(Err(Missing::Absent | Missing::Unreadable(_))) => false,
    }
}

/// The condition `Paused` of an object, if it holds something back.
fn held_back(object: Live<'_>) -> Option<Condition<'_>> {
    let paused = object.condition("Paused").filter(|it| it.status == "True");
    paused.filter(|it| !it.message.contains("no changes are held back"))
}

/// Adds the cause that 5-Spot is paused for the whole namespace.
fn namespace_pause<'f>(walk: &mut Walk<'f>, object: Live<'f>, paused: &Condition<'f>) {
    let id = ObjectId::cluster_scoped("", "Namespace", object.namespace());
    let cause =
        format!("5-Spot is paused for everything in this namespace by the annotation {}", annotation::PAUSED);
    let fix = CauseFix::safe_if(
        walk.kubectl.remove_annotation(&id, annotation::PAUSED),
        "5-Spot continues with everything in the namespace that the pause held back",
    );
    walk.blocked(&id, cause, vec![words::condition(paused)], vec![fix]);
}

/// The machine is drained before its Machine is deleted.
fn draining<'f>(walk: &mut Walk<'f>, object: Live<'f>, mut evidence: Vec<String>) -> bool {
    // A pause of Cluster API holds the drain up until the timeout.
    evidence.extend(held_back(object).iter().map(words::condition));
    let blocked = object.list("/status/drain/blocked").map(Live);
    evidence.extend(blocked.map(|it| {
        words::quoted(&format!("pod {} blocks the drain: {}", it.text("/pod"), it.text("/reason")))
    }));
    let Some(settings) = controllers::cleanup_settings(walk) else { return true };
    let (policy, timeout) = (settings.policy, settings.policy.finalizer_cleanup_timeout);
    if !settings.is_known {
        evidence.push(
            "the settings of the controller could not be read; these are the defaults of \
             --finalizer-cleanup-timeout-secs and --force-finalizer-on-timeout"
                .to_owned(),
        );
    }
    let overdue = walk.overdue(object);
    if overdue < timeout {
        let cause = format!(
            "5-Spot drains the node before it deletes the Machine; it has {} left",
            words::duration(timeout - overdue)
        );
        walk.waiting(&object.id(), cause, evidence);
        return true;
    }
    let then = if policy.force_finalizer_on_timeout {
        "the controller removes its finalizer once it has requested the deletion of the Machine"
    } else {
        "with --force-finalizer-on-timeout=false the finalizer stays until the cleanup is complete"
    };
    evidence.push(format!(
        "the cleanup timeout of {} ended {} ago; {then}",
        words::duration(timeout),
        words::duration(overdue - timeout)
    ));
    let cause = "the drain has taken longer than the cleanup timeout".to_owned();
    let (name, namespace) = (object.name(), object.namespace());
    let fix = vec![CauseFix::safe(walk.kubectl.five_spot(&format!("explain {name} -n {namespace}")))];
    walk.blocked(&object.id(), cause, evidence, fix);
    true
}

/// A `ScheduledMachine` that is not being deleted has a command of its own.
pub(super) fn explanation<'f>(walk: &mut Walk<'f>, object: Live<'f>, step: usize) {
    walk.note(
        step,
        words::quoted(&format!("phase {}: {}", object.text("/status/phase"), object.text("/status/message"))),
    );
    walk.note_conditions(step, object);
    let command = walk.kubectl.five_spot(&format!("explain {} -n {}", object.name(), object.namespace()));
    walk.note(step, format!("`{command}` shows its schedule, what happens next and what blocks it"));
}
