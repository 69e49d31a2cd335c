//! The decision logic of 5-Spot: parsing a spec, evaluating its schedule, and deciding what to do. Nothing in this crate
//! talks to a cluster or reads a clock or the environment. The time and the observed state are arguments.

pub mod action;
pub mod backoff;
pub mod claim;
pub mod drain;
mod field;
mod fingerprint;
mod identity;
mod lifecycle;
pub mod schedule;
pub mod shard;
mod spec;
pub mod taints;
pub mod text;
pub mod world;

pub use field::FieldError;
pub use fingerprint::Fingerprint;
pub use identity::MachineIdentity;
pub use lifecycle::{
    Decision, EMERGENCY_DRAIN_TIMEOUT_SECS, Evidence, Fault, FaultKind, RAPID_RE_RECLAIM_THRESHOLD,
    RAPID_RE_RECLAIM_WINDOW_SECS, RemovalLimit, RemovalLimitError, UNPLANNED_REMOVALS_WINDOW, Unplanned,
    UnplannedRemovals, decide, decide_invalid, may_begin,
};
pub use spec::{InvalidSpec, ProviderKind, RemovalSettings, ValidSpec, check_name};
pub use world::World;
