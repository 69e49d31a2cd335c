//! The wire types of 5-Spot: what a person writes, what the controller reports, and what the two
//! programs of 5-Spot say to each other. Every name, label, annotation and reason stands here, once.
//!
//! This crate decides nothing. What a spec means is the business of `five-spot-core`.

pub mod condition;
mod crd;
pub mod event;
pub mod names;
pub mod phase;
pub mod reclaim;
pub mod rules;
mod scheduled_machine;
mod schema;
mod spec;
mod status;

pub use crd::crd;
pub use phase::Phase;
pub use scheduled_machine::{ScheduledMachine, ScheduledMachineSpec};
pub use spec::{
    DrainSpec, KubeconfigSecretRef, MachineTemplate, NodeTaint, OnTimeout, OverrideSpec, OverrideState,
    ProviderObject, ReclaimSpec, ScheduleException, ScheduleSpec, ScheduleState, TaintEffect, WeeklyWindow,
};
pub use status::{
    BlockedPod, DrainStatus, JoinStatus, ObjectRef, ReclaimRecord, ScheduledMachineStatus, WorkloadCluster,
};
