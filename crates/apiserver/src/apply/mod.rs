//! Field ownership: server-side apply and `metadata.managedFields`.
//!
//! Everything here is a pure function of objects, types and managers. The rules are those of Kubernetes'
//! structured merge: a field belongs to the manager that set or applied it last; applying a different value
//! to a field of another manager is a conflict; a field that its manager no longer applies is removed, unless
//! another manager owns it.

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
