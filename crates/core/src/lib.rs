//! The decision logic of 5-Spot: parsing a spec, evaluating its schedule, and deciding what to do. Nothing in this crate
//! talks to a cluster or reads a clock or the environment. The time and the observed state are arguments.

pub mod action;
pub mod backoff;
pub mod drain;
mod field;
mod fingerprint;
mod lifecycle;
pub mod schedule;
mod spec;
pub mod taints;
pub mod text;
pub mod world;

pub use field::FieldError;
pub use fingerprint::Fingerprint;
pub use lifecycle::{
    Decision, EMERGENCY_DRAIN_TIMEOUT_SECS, Evidence, Fault, FaultKind, RAPID_RE_RECLAIM_THRESHOLD,
    RAPID_RE_RECLAIM_WINDOW_SECS, decide, decide_invalid,
};
pub use spec::{InvalidSpec, ProviderKind, RemovalSettings, ValidSpec, check_name};
pub use world::World;
