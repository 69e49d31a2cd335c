//! The audit trail: one line for every change of a phase, for a forced drain and for the end of an object, under a target
//! of its own, with the fields of [`SCHEMA`]. Events live an hour; these lines can be kept.

use five_spot_api::Phase;
use five_spot_api::condition::Reason;
use five_spot_cluster::view::Observed;
use five_spot_core::Decision;

/// The target of its lines.
pub const TARGET: &str = "audit";

/// The version of the fields of a line (`docs/logs.md`). It rises with any change other than an added field.
pub const SCHEMA: u32 = 1;

/// The `to` of an object whose finalizer is gone: it has no phase any more.
const GONE: &str = "Gone";

/// Logs a change of the phase. The fields of the reconcile name the object.
pub(crate) fn transition(observed: &Observed, decision: &Decision, from: &str, to: Phase) {
    log_change("Phase changed", observed, decision, from, to.as_str());
}

/// Logs that the finalizer of a deleted object was removed.
pub(crate) fn released(observed: &Observed, decision: &Decision) {
    let from = decision.status.phase.or(observed.world.status.phase).map_or("None", Phase::as_str);
    log_change("Object released", observed, decision, from, GONE);
}

/// Logs that the deadline of a drain has passed, and the pods that were overridden.
pub(crate) fn drain_forced(observed: &Observed, decision: &Decision, what: &str) {
    let phase = decision.status.phase.map_or("None", Phase::as_str);
    log("Drain forced", observed, phase, phase, "DrainForced", what);
}

fn log_change(what: &str, observed: &Observed, decision: &Decision, from: &str, to: &str) {
    let detail = decision.status.message.as_deref().unwrap_or_default();
    log(what, observed, from, to, cause(observed, decision), detail);
}

fn log(what: &str, observed: &Observed, from: &str, to: &str, cause: &str, detail: &str) {
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

/// The cause of a change: a fault, a deletion, or the reason for which a machine is wanted or not.
fn cause(observed: &Observed, decision: &Decision) -> &'static str {
    let of_fault = decision.fault.as_ref().map(|fault| fault.kind.reason());
    let of_deletion = observed.world.object.deletion.map(|_| "Deletion");
    of_fault.map(Reason::as_str).or(of_deletion).unwrap_or_else(|| decision.demand.as_str())
}
