//! The span of a reconcile.

use super::OURS;
use tracing::{Span, field, info_span};

/// The name of the span of a reconcile: its fields go into every line.
pub(super) const RECONCILE: &str = "reconcile";
/// The object, as kube's own spans name it. It goes into `span`, and not into `fields`.
pub(super) const OBJECT_REF: &str = "object.ref";
/// The field with the reason of the reconcile; likewise.
pub(super) const OBJECT_REASON: &str = "object.reason";

/// The span that everything belongs to which happens in one reconcile of one `ScheduledMachine`. Its `phase` is recorded
/// as soon as it is known: `span.record("phase", ...)`.
pub fn reconcile_span(reconcile_id: &str, namespace: &str, name: &str, reason: &str) -> Span {
    info_span!(
        target: "five_spot_controller::reconcile",
        RECONCILE,
        reconcile_id,
        resource = name,
        namespace,
        phase = field::Empty,
        object.ref = %format_args!("ScheduledMachine.v1alpha1.5spot.finos.org/{name}.{namespace}"),
        object.reason = reason,
    )
}

/// True for a span of one of our own crates.
pub(super) fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    metadata.target().starts_with(OURS)
}
