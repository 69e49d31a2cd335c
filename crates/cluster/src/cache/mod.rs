//! Projections of the objects that decisions need, and the watches that keep them up to date.
//!
//! [`start`] opens the watches. [`Caches`] holds what they have shown; the layers above read it and write the answers of
//! their own requests back into it.

pub(crate) mod caches;
pub(crate) mod change_cause;
pub(crate) mod changes;
pub(crate) mod claim_watch;
pub(crate) mod claims;
pub(crate) mod drain_rules;
#[cfg(test)]
mod fuzz;
mod garbage_collection;
mod link_limit;
pub(crate) mod links;
pub(crate) mod lock;
pub(crate) mod managed_fields;
pub(crate) mod memory;
pub(crate) mod namespace_watch;
mod node_index;
mod probe;
pub(crate) mod project;
pub(crate) mod reachability;
pub(crate) mod read_once;
pub(crate) mod references;
pub(crate) mod room;
mod secret_store;
pub(crate) mod secrets;
pub(crate) mod standings;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod watch;
pub(crate) mod watches;
pub(crate) mod workload;
pub(crate) mod write_back;

pub use caches::{ANY_NAMESPACE, Caches, ClusterSettings};
pub use change_cause::ChangeCause;
pub use changes::{ChangeReceiver, ChangeSender, change_channel};
pub use probe::reachable;
pub use start::start;
