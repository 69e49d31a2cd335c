//! Projections of the objects that decisions need, and the watches that keep them up to date.

pub(crate) mod cause;
pub(crate) mod drain_rules;
pub(crate) mod drift;
pub(crate) mod fleet;
pub(crate) mod memory;
pub(crate) mod own_namespace;
pub(crate) mod project;
mod reachable;
mod secrets;
pub(crate) mod store;
mod tidy;
pub(crate) mod watch;
mod watches;
pub(crate) mod workload;
