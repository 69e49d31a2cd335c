//! Field ownership: server-side apply and the bookkeeping of `metadata.managedFields`.
//!
//! Everything here is a pure function of objects, types and managers. The rules are those of Kubernetes' structured
//! merge: a field belongs to whoever set it last or applied it; applying what another manager owns with another value
//! is a conflict; what a manager no longer applies and nobody else owns goes away.

mod compare;
mod extract;
mod field_set;
mod last_applied;
mod managers;
mod merge;
mod ownership;
mod prune;

pub(crate) use last_applied::{note_last_applied, take_over};
pub(crate) use managers::{ManagerId, Operation};
pub(crate) use ownership::{ConflictingFields, Owner, apply, track_update};
