//! Deletions that do not end, and what they leave behind.

use super::facts::DoctorFacts;
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, label, list, name, namespace, text, time, words};
use super::machine::Case;
use crate::object::ReportedObject;
use five_spot_api::names;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeSet;

/// The time that Cluster API and a provider may take to delete a Machine that is drained.
const DELETION: SignedDuration = SignedDuration::from_mins(10);

/// The time after its limit for which a cleanup may still be seen.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let overdue = finalizer(case);
    let is_overdue = overdue.is_some();
    findings.extend(overdue);
    if !is_overdue {
        findings.extend(stuck_machine(case));
    }
}

/// The state of a Machine that is being deleted: its finalizers, and what Cluster API says.
fn deletion_words(machine: &Value) -> Vec<String> {
    let finalizers: Vec<&str> =
        list(machine, "/metadata/finalizers").iter().filter_map(Value::as_str).collect();
    let held = format!("Machine {}: finalizers {}", name(machine), finalizers.join(", "));
    let since = format!("deletionTimestamp {}", text(machine, "/metadata/deletionTimestamp"));
    let said = ["Deleting", "DrainingSucceeded", "VolumeDetachSucceeded", "InfrastructureReady"];
    let conditions = said.into_iter().filter_map(|kind| condition(machine, kind)).map(words);
    [held, since].into_iter().chain(conditions).collect()
}

fn stuck_machine(case: &Case<'_>) -> Option<Finding> {
    let machine = case.capi?;
    let since = time(machine, "/metadata/deletionTimestamp")?;
    // A pause that holds the deletion up has a finding of its own.
    let is_paused = case.condition("Paused").is_some_and(|paused| paused.status == "True");
    if case.facts.since(since) < DELETION || is_paused {
        return None;
    }
    let (space, object) = (case.machine.namespace(), name(machine));
    let title =
        format!("Machine {object} has been terminating for {} minutes", case.facts.since(since).as_mins());
    Some(
        case.find(FindingId::MachineStuckDeleting, Severity::Error, title)
            .cause("Cluster API or the provider does not finish: its finalizers are still there.")
            .evidence_of(deletion_words(machine))
            .fix(Fix::command(format!("5spot why machine/{object} -n {space}")))
            .fix(Fix::command(format!("kubectl describe machines.cluster.x-k8s.io {object} -n {space}")))
            .fix(Fix::command("kubectl logs -n capi-system -l control-plane=controller-manager --tail=50")),
    )
}

fn finalizer(case: &Case<'_>) -> Option<Finding> {
    let since = case.machine.deleted_at()?;
    let ours = list(&case.machine.object, "/metadata/finalizers").iter().any(|one| one == names::FINALIZER);
    let policy = case.facts.pods().first().map(|pod| pod.config.policy).unwrap_or_default();
    let limit = policy.finalizer_cleanup_timeout;
    if !ours || case.facts.since(since) < limit + LEEWAY {
        return None;
    }
    let (space, object) = (case.machine.namespace(), case.machine.name());
    let title = "the cleanup of the deleted object takes too long";
    Some(
        case.find(FindingId::FinalizerOverdue, Severity::Error, title)
            .cause(
                "The controller keeps its finalizer until the machine is gone, at most for the time limit.",
            )
            .evidence(format!("deletionTimestamp {since}, and the limit is {} s", limit.as_secs()))
            .evidence_of(case.condition("Ready").map(|ready| ready.words()))
            .evidence_of(case.capi.map(deletion_words).unwrap_or_default())
            .fix(Fix::command(format!("5spot why scheduledmachine/{object} -n {space}")))
            .fix(
                Fix::command(format!(
                    "kubectl patch scheduledmachine {object} -n {space} --type=json -p \
                     '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}}]'"
                ))
                .because(
                    "releases the object; its Machine, Node and provider objects may stay, and you have to \
                     find and delete them yourself",
                )
                .risky(),
            ),
    )
}

/// Machines whose `ScheduledMachine` does not exist.
pub(super) fn judge_orphans(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    let Some(known) = &facts.known else { return };
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    for machine in &facts.capi_machines {
        let Some(owner) = label(machine, names::label::SCHEDULED_MACHINE) else { continue };
        let (space, object) = (namespace(machine), name(machine));
        if known.contains(format!("{space}/{owner}").as_str()) {
            continue;
        }
        let deleted = time(machine, "/metadata/deletionTimestamp");
        // The garbage collector has just begun.
        if deleted.is_some_and(|at| facts.since(at) < DELETION) {
            continue;
        }
        let reference = ReportedObject::namespaced("Machine", space, object);
        let title = format!("Machine {object} is left over: its ScheduledMachine {owner} does not exist");
        let words = if deleted.is_some() { deletion_words(machine) } else { Vec::new() };
        let timed_out = facts.events.iter().find(|event| {
            text(event, "/reason") == "FinalizerCleanupTimedOut" && text(event, "/regarding/name") == owner
        });
        let mut found = Finding::new(FindingId::OrphanedMachine, Severity::Warning, reference, title)
            .cause("The object was released after its time limit, deleted with --cascade=orphan, or lost its finalizer.")
            .evidence(format!("label {}={owner}, and there is no such object", names::label::SCHEDULED_MACHINE))
            .evidence_of(timed_out.map(|event| format!("event FinalizerCleanupTimedOut: {}", text(event, "/note"))))
            .evidence_of(words);
        found = match deleted {
            Some(_) => found.fix(Fix::command(format!("5spot why machine/{object} -n {space}"))),
            None => found.fix(
                Fix::command(format!("kubectl delete machines.cluster.x-k8s.io {object} -n {space}"))
                    .because("Cluster API drains its node and deletes what belongs to it")
                    .risky(),
            ),
        };
        findings.push(found);
    }
}
