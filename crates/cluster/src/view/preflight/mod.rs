//! The preconditions of a controller: a CRD of `ScheduledMachine` that fits, and the permissions
//! that every object needs. Both are asked of the API server itself, by requests that everyone may send.

mod definition;
mod permissions;

pub use definition::{CrdFit, FieldDifferences, definition};
pub use permissions::{Permission, for_claims, refused, required};
