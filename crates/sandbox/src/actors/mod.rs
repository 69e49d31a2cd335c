//! The others on the stage: Cluster API, an infrastructure provider, kubelets, a scheduler.
//!
//! Small stand-ins that talk to the API as their originals do and know nothing else. Each looks at the whole of its
//! world whenever something in it changes or a time comes that it waits for, and does what is due; so none of them
//! can miss anything, and a run is the same every time. Delays and failures are set by the scenario.

mod capi;
mod drain;
mod drive;
mod kinds;
mod kubelet;
mod objects;
mod provider;
mod scheduler;

pub use capi::{Capi, CapiConfig};
pub use drive::{Actor, drive};
pub use kinds::{cluster_api_definitions, resource};
pub use kubelet::{Kubelet, KubeletConfig};
pub use provider::{Provider, ProviderConfig};
pub use scheduler::Scheduler;
