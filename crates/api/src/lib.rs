//! The API types of 5-Spot: the `ScheduledMachine` resource, its CRD, and the contract between the controller and the
//! reclaim agent. Every name, label, annotation and reason is defined here, once.
//!
//! This crate contains no logic of the lifecycle; that is in `five-spot-core`.

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

pub use crd::{SHAPE, crd, shape};
pub use phase::Phase;
pub use scheduled_machine::{ScheduledMachine, ScheduledMachineSpec};
pub use spec::{
    DrainSpec, KubeconfigSecretRef, MachineTemplate, NodeTaint, OnTimeout, OverrideSpec, OverrideState,
    ProviderObject, ReclaimResume, ReclaimSpec, ScheduleException, ScheduleSpec, ScheduleState, TaintEffect,
    WeeklyWindow,
};
pub use status::{
    BlockedPod, DrainStatus, JoinStatus, ObjectRef, ReclaimRecord, ReclaimStage, ReclaimStages,
    ScheduledMachineStatus, UnplannedRemoval, WorkloadCluster,
};
