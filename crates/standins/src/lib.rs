//! Stand-ins for the controllers around 5-Spot: Cluster API, an infrastructure provider, kubelets, the scheduler and the
//! controllers of Deployments and DaemonSets.
//!
//! Each stand-in uses the API server through a `kube::Client`, as a real controller does: it watches objects,
//! caches them, decides with pure functions, and writes. The stand-ins do not call each other; they interact
//! only through fields of objects. [`StandInSettings`] contains the duration of each step and the steps that
//! fail, and can be changed at run time. [`cluster_api_crds`] and [`provider_crds`] are the CRDs of the kinds
//! that the stand-ins serve.
//!
//! Their behaviour follows that of the real components, as observed in the end-to-end tests. Each module
//! documents what it leaves out.

mod cluster_api;
mod clusters;
mod context;
mod errors;
mod kinds;
mod kubelet;
mod provider;
mod settings;
mod stand_ins;
mod stopwatch;
mod work_queue;
mod workloads;

pub use cluster_api::{Contract, crds as cluster_api_crds};
pub use errors::{ErrorLog, StandInError};
pub use kubelet::{FINISHES_AFTER_ANNOTATION, STOPS_AFTER_ANNOTATION, machine_id};
pub use provider::{crds as provider_crds, node_name};
pub use settings::{ProviderBehaviour, StandInSettings, StepBehaviour, Timing};
pub use stand_ins::StandIns;
