//! Several instances that share the objects.

use super::facts::{DoctorFacts, Lease};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::logs::last_with;
use super::machine::MachineFacts;
use crate::object::ReportedObject;
use five_spot_core::shard::owner;
use jiff::SignedDuration;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The time that a rolling update may take, as in the alert `FiveSpotShardMismatch`.
const ROLLOUT: SignedDuration = SignedDuration::from_mins(10);

/// The log line about an object that another instance works on.
const NOT_OWNED: &str = "Resource not owned by this instance";

pub(super) fn judge(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    findings.extend(mismatch(facts));
    findings.extend(other_shard(facts));
}

/// The Leases by which live instances announce their number.
fn announced(facts: &DoctorFacts) -> Vec<&Lease> {
    let leases = facts.controller.leases.iter().flatten();
    leases.filter(|lease| lease.name.contains("-instance-") && lease.is_held(facts.now)).collect()
}

fn mismatch(facts: &DoctorFacts) -> Option<Finding> {
    let leases = announced(facts);
    let counts: BTreeSet<u32> = leases.iter().filter_map(|lease| lease.instances).collect();
    let newest = leases.iter().filter_map(|lease| lease.acquired).max();
    let is_rollout = newest.is_some_and(|at| facts.since(at) < ROLLOUT);
    if counts.len() < 2 || is_rollout {
        return None;
    }
    let object = ReportedObject::namespaced("Lease", &facts.controller.namespace, &leases.first()?.name);
    let words = leases.iter().map(|lease| {
        let count = lease.instances.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!("Lease {} of {} announces {count} instances", lease.name, lease.holder)
    });
    let most = counts.last().copied().unwrap_or(1);
    Some(
        Finding::new(
            FindingId::ShardMismatch,
            Severity::Error,
            object,
            "the instances of the controller have different --instance-count values",
        )
        .cause("An object that two instances claim may be reconciled by neither until all instances have the same count.")
        .evidence_of(words)
        .fix(
            Fix::note(format!(
                "give every instance the same OPERATOR_INSTANCE_COUNT (such as {most}) and restart those that have another"
            )),
        )
        .fix(Fix::command(format!(
            "kubectl get leases -n {} -L 5spot.finos.org/instance-count",
            facts.controller.namespace
        ))),
    )
}

/// The number of instances that share the objects, if there are several.
fn instances(facts: &DoctorFacts) -> Option<NonZeroU32> {
    let count = facts.configurations().map(|config| config.instances).max()?;
    NonZeroU32::new(count).filter(|count| count.get() > 1)
}

/// The instance that owns a machine, and the Leases that it holds.
fn by_hash(facts: &DoctorFacts, machine: &MachineFacts, count: NonZeroU32) -> String {
    let id = owner(machine.namespace(), machine.name(), count);
    let lease = facts.configurations().map(|config| format!("{}-instance-{id}", config.lease_name)).next();
    let leases = facts.controller.leases.iter().flatten();
    let lease =
        leases.filter(|lease| lease.is_held(facts.now)).find(|held| Some(&held.name) == lease.as_ref());
    let holder = lease.map_or_else(
        || "no Lease shows which pod that is".to_owned(),
        |lease| format!("Lease {} is held by {}", lease.name, lease.holder),
    );
    format!("instance {id} of {count} (numbered from 0) owns it; {holder}")
}

/// The machine that was asked about belongs to one of several instances.
fn other_shard(facts: &DoctorFacts) -> Vec<Finding> {
    if !facts.is_named {
        return Vec::new();
    }
    let count = instances(facts);
    let mut findings = Vec::new();
    for machine in &facts.machines {
        let lines = facts.pods().iter().filter_map(|pod| {
            let about: Vec<_> = pod
                .log
                .iter()
                .filter(|line| line.is_about(machine.namespace(), machine.name()))
                .cloned()
                .collect();
            last_with(&about, NOT_OWNED)
                .map(|line| format!("{} (pod {})", line.words(), super::json::name(&pod.pod)))
        });
        let by_hash = count.map(|count| by_hash(facts, machine, count));
        let evidence: Vec<String> = by_hash.into_iter().chain(lines).collect();
        if evidence.is_empty() {
            continue;
        }
        let object =
            ReportedObject::namespaced(five_spot_api::names::KIND, machine.namespace(), machine.name());
        let title = "one of several instances of the controller manages this machine";
        findings.push(
            Finding::new(FindingId::OtherShard, Severity::Info, object, title)
                .cause(
                    "Several instances share the machines. This is normal: the others do not work on this \
                     machine, and their logs do not mention it.",
                )
                .evidence_of(evidence)
                .fix(
                    Fix::command(format!(
                        "kubectl logs -n {} -l app=5spot-controller --tail=-1 --prefix | grep '\"resource\":\"{}\"'",
                        facts.controller.namespace,
                        machine.name()
                    ))
                    .because("shows which instance works on it"),
                ),
        );
    }
    findings
}
