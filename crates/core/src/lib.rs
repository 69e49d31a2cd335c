//! The pure heart of 5-Spot: what a spec means, and what should happen. Nothing here talks to a
//! cluster, reads a clock or an environment: time comes in as an argument, the world as a value.

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
pub use spec::{Handling, InvalidSpec, ProviderKind, ValidSpec, check_name};
pub use world::World;
