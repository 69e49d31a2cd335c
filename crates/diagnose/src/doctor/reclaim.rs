//! Emergency reclaims.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{annotation, list, name, text};
use super::machine::Case;
use five_spot_api::{ReclaimRecord, names};
use five_spot_core::{RAPID_RE_RECLAIM_THRESHOLD, RAPID_RE_RECLAIM_WINDOW_SECS};
use jiff::SignedDuration;
use serde_json::json;

/// The time in which a reclaim is done: pods have 60 s, and Cluster API and the provider need some more.
const DONE: SignedDuration = SignedDuration::from_mins(5);

/// The time for which reclaims that followed one another quickly are worth a warning.
const RECENT: SignedDuration = SignedDuration::from_hours(2);

/// The longest time between two windows of a weekly schedule, and a little more.
const A_WEEK: SignedDuration = SignedDuration::from_hours(8 * 24);

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let records = &case.machine.status.reclaims;
    let unfinished = records.iter().find(|record| record.finished_at.is_none());
    if let Some(record) = unfinished {
        findings.extend(unfinished_reclaim(case, record));
        return;
    }
    if let Some(found) = rapid(case, records) {
        findings.push(found);
    } else {
        findings.extend(every_window(case, records));
    }
}

fn record_words(record: &ReclaimRecord) -> String {
    let end = record
        .finished_at
        .as_ref()
        .map_or_else(|| "not finished".to_owned(), |at| format!("finished {}", at.0));
    format!("reclaim of node {} requested {}: {} ({end})", record.node, record.requested_at.0, record.reason)
}

fn unfinished_reclaim(case: &Case<'_>, record: &ReclaimRecord) -> Option<Finding> {
    if case.facts.since(record.requested_at.0) < DONE {
        return None;
    }
    let enabled = case.machine.object["spec"]["schedule"]["enabled"].as_bool() != Some(false);
    if case.capi.is_none() && enabled {
        let title = "a reclaim has removed the machine but not disabled the schedule";
        return Some(
            case.find(FindingId::ScheduleNotDisabledAfterReclaim, Severity::Error, title)
                .cause("The patch of spec.schedule.enabled is refused, or a GitOps tool reverts it at once.")
                .evidence(record_words(record))
                .evidence("spec.schedule.enabled is true")
                .evidence_of(case.condition("Ready").map(|ready| ready.words()))
                .evidence_of(case.log("disable the schedule"))
                .fix(Fix::command(case.patch(&json!({"schedule": {"enabled": false}}))))
                .fix(Fix::note(
                    "if a GitOps tool reverts it: set spec.reclaim.resume to OnAnnotation, or make the tool \
                     ignore the field",
                )),
        );
    }
    let (space, machine) = (case.machine.namespace(), names::machine(case.machine.name()));
    let pods = case.workload.and_then(|workload| workload.pods.get(case.node_name()));
    let on_node = pods.map(|pods| {
        let names: Vec<String> =
            pods.iter().take(5).map(|pod| format!("{}/{}", super::json::namespace(pod), name(pod))).collect();
        let are = if pods.len() == 1 { "pod is" } else { "pods are" };
        format!("{} {are} on the node: {}", pods.len(), names.join(", "))
    });
    let held = case.capi.map(|capi| {
        let finalizers: Vec<&str> =
            list(capi, "/metadata/finalizers").iter().filter_map(serde_json::Value::as_str).collect();
        let since = text(capi, "/metadata/deletionTimestamp");
        let state =
            if since.is_empty() { "not deleted".to_owned() } else { format!("terminating since {since}") };
        format!("Machine {machine} is {state}; finalizers {}", finalizers.join(", "))
    });
    let asks = case.node.and_then(|node| annotation(node, five_spot_api::reclaim::REQUESTED));
    Some(
        case.find(FindingId::EmergencyStuck, Severity::Error, "an emergency reclaim does not finish")
            .cause(
                "The owner is waiting for the machine. Cluster API, the provider or a refused request delays \
                 its removal.",
            )
            .evidence(record_words(record))
            .evidence_of(held)
            .evidence_of(on_node)
            .evidence_of(asks.map(|value| {
                format!("node {}: {}={value}", case.node_name(), five_spot_api::reclaim::REQUESTED)
            }))
            .evidence_of(case.condition("Ready").map(|ready| ready.words()))
            .fix(Fix::command(format!("5spot why machine.cluster.x-k8s.io/{machine} -n {space}")))
            .fix(Fix::command(format!("kubectl describe machines.cluster.x-k8s.io {machine} -n {space}"))),
    )
}

fn rapid(case: &Case<'_>, records: &[ReclaimRecord]) -> Option<Finding> {
    let newest = records.first()?.requested_at.0;
    let window = SignedDuration::from_secs(RAPID_RE_RECLAIM_WINDOW_SECS);
    let close: Vec<&ReclaimRecord> =
        records.iter().filter(|record| newest.duration_since(record.requested_at.0) <= window).collect();
    if close.len() < RAPID_RE_RECLAIM_THRESHOLD || case.facts.since(newest) > RECENT {
        return None;
    }
    let title = format!("the machine was reclaimed {} times within ten minutes", close.len());
    Some(
        case.find(FindingId::RapidReReclaim, Severity::Warning, title)
            .cause("The schedule was enabled again while the matching program was still running.")
            .evidence_of(close.iter().map(|record| record_words(record)))
            .evidence(format!("spec.killIfCommands is {:?}", case.machine.commands()))
            .fix(Fix::note("ask the owner to end the program before the schedule is enabled again"))
            .fix(Fix::note("if the pattern matches too much: make it more specific in spec.killIfCommands"))
            .fix(
                Fix::command(case.patch(&json!({"killIfCommands": []})))
                    .because("ends the loop: programs of the owner no longer trigger a reclaim")
                    .risky(),
            ),
    )
}

/// Reclaims in several windows, one after the other.
fn every_window(case: &Case<'_>, records: &[ReclaimRecord]) -> Option<Finding> {
    let newest = records.first()?;
    if case.facts.since(newest.requested_at.0) > A_WEEK || records.len() < RAPID_RE_RECLAIM_THRESHOLD {
        return None;
    }
    let gaps = records.windows(2).map(|pair| pair[0].requested_at.0.duration_since(pair[1].requested_at.0));
    let hour = SignedDuration::from_hours(1);
    let apart = gaps.take_while(|gap| *gap <= A_WEEK).filter(|gap| *gap > hour).count() + 1;
    let same = records.iter().take(RAPID_RE_RECLAIM_THRESHOLD).all(|record| record.reason == newest.reason);
    if apart < RAPID_RE_RECLAIM_THRESHOLD || !same {
        return None;
    }
    let title = format!("the machine was reclaimed in {apart} windows, each time for the same reason");
    Some(
        case.find(FindingId::EjectedEveryWindow, Severity::Warning, title)
            .cause(
                "The owner's program is running whenever the window opens: the schedule does not fit the \
                 owner's hours.",
            )
            .evidence_of(records.iter().take(5).map(record_words))
            .fix(Fix::note(
                "agree on other hours with the owner, or ask the owner to end the program before the window \
                 opens",
            ))
            .fix(
                Fix::command(case.patch(&json!({"killIfCommands": []})))
                    .because("programs of the owner no longer trigger a reclaim")
                    .risky(),
            ),
    )
}
