//! The provider's side of Cluster API, played by the harness: k0smotron is not to be had as a Go module, so its kinds
//! are stand-ins with its field names, and this actor does what its controllers would: bootstrap data, a machine, a node
//! that joins, and their end. It can be told to fail or to hang at each of these steps.

mod actor;
mod conduct;
mod steps;

pub use actor::Provider;
/// The stand-in for tests on the in-memory API behaves in the same ways.
pub use five_spot_standins::{ProviderBehaviour, StepBehaviour};
pub use steps::{EXTERNALLY_MANAGED_ANNOTATION, MACHINE_FINALIZER, NODE_NAMESPACE_LABEL, node_name};
