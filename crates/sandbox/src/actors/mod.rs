//! Those who live around the API: stand-ins for Cluster API, an infrastructure provider, kubelets, the scheduler and
//! the controllers of Deployments.
//!
//! Each is a small actor that talks to the API through a `kube::Client` like anybody else: it watches, keeps a mirror
//! of what it saw, decides with pure functions, and writes. None of them knows another; what they agree on are fields
//! of objects, as in a real cluster. How long things take, and what fails, stands in a [`Scenario`] that can be
//! changed while they play.
//!
//! They are not Cluster API and not Kubernetes. What they do follows what the end-to-end tests saw the real ones do;
//! what they leave out is said at the head of each module.

mod agenda;
mod cluster_api;
mod clusters;
mod kinds;
mod kubelet;
mod mishaps;
mod provider;
mod scenario;
mod stage;
mod stopwatch;
mod troupe;
mod workloads;

pub use cluster_api::{Contract, crds as cluster_api_crds};
pub use kubelet::{FINISHES_AFTER_ANNOTATION, STOPS_AFTER_ANNOTATION, machine_id};
pub use mishaps::{Mishap, Mishaps};
pub use provider::{crds as provider_crds, node_name};
pub use scenario::{Behaviour, Conduct, Scenario, Timing};
pub use troupe::Troupe;
