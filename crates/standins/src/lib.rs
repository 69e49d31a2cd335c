//! Stand-ins for the controllers around 5-Spot: Cluster API, an infrastructure provider, kubelets, the scheduler and the
//! controllers of Deployments and DaemonSets.
//!
//! Each stand-in talks to the API server through a `kube::Client`, as a real controller would: it watches, keeps a local
//! copy of the objects, decides with pure functions, and writes. None of them knows another; they interact through fields
//! of objects only. A [`StandInSettings`] holds how long each step takes and which steps fail, and can be changed while they
//! run. [`cluster_api_crds`] and [`provider_crds`] are the CRDs of the kinds that they serve.
//!
//! Their behaviour follows what the end-to-end tests observe of the real components; each module says what it leaves out.

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
