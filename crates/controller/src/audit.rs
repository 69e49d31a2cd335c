//! The audit trail: one line for every change of a phase, for a drain that was forced and for the end of an object, under a target of its own, with the same fields for as long as
//! [`SCHEMA`] says so. Events live an hour; whoever has to answer later what happened keeps these lines.

use five_spot_api::Phase;
use five_spot_api::condition::ConditionType;
use five_spot_cluster::Observed;
use five_spot_core::Decision;

/// The target of its lines.
pub const TARGET: &str = "audit";

/// Which fields a line has, and what they mean (`docs/logs.md`). A field may be added; for anything else it rises.
pub const SCHEMA: u32 = 1;

/// What an object becomes whose finalizer is gone: it has no phase any more.
const GONE: &str = "Gone";

/// Says that the phase of an object changes. Which object is in the fields of the reconcile that this belongs to.
pub(crate) fn transition(observed: &Observed, decision: &Decision, from: &str, to: Phase) {
    say("Phase changed", observed, decision, from, to.as_str());
}

/// Says that nothing holds an object any more that is being deleted.
pub(crate) fn let_go(observed: &Observed, decision: &Decision) {
    let from = decision.status.phase.or(observed.world.status.phase).map_or("None", Phase::as_str);
    say("Object let go", observed, decision, from, GONE);
}

/// Says that the deadline of a drain has passed, and what was overridden.
pub(crate) fn drain_forced(observed: &Observed, decision: &Decision, what: &str) {
    let phase = decision.status.phase.map_or("None", Phase::as_str);
    line("Drain forced", observed, phase, phase, "DrainForced", what);
}

fn say(what: &str, observed: &Observed, decision: &Decision, from: &str, to: &str) {
    let detail = decision.status.message.as_deref().unwrap_or_default();
    line(what, observed, from, to, cause(observed, decision), detail);
}

fn line(what: &str, observed: &Observed, from: &str, to: &str, cause: &str, detail: &str) {
    let object = &observed.world.object;
    tracing::info!(
        target: TARGET,
        schema = SCHEMA,
        kind = five_spot_api::names::KIND,
        uid = object.uid.as_str(),
        from,
        to,
        cause,
        detail,
        generation = object.generation,
        spec_changed_by = observed.spec_by.as_deref().unwrap_or_default(),
        "{what}"
    );
}

/// What brought the change about: a deletion, what is wrong, or why a machine is wanted or not.
fn cause<'a>(observed: &Observed, decision: &'a Decision) -> &'a str {
    let reason = |condition: ConditionType| {
        let found = decision.status.conditions.iter().find(|other| other.type_ == condition.as_str());
        found.map(|condition| condition.reason.as_str())
    };
    let of_fault = decision.fault.as_ref().map(|fault| fault.kind.reason().as_str());
    let of_deletion = observed.world.object.deletion.map(|_| "Deletion");
    of_fault.or(of_deletion).or_else(|| reason(ConditionType::Scheduled)).unwrap_or_default()
}
