//! The provider's side of Cluster API, implemented by the harness. k0smotron is not available as a Go module, so its
//! kinds are stand-ins with its field names, and this actor does the work of its controllers: bootstrap data, a
//! machine, a node that joins, and their removal. Each of these steps can be made to fail or to hang.

mod actor;
mod conduct;
mod steps;

pub use actor::Provider;
/// The stand-in for tests on the in-memory API behaves in the same ways.
pub use five_spot_standins::{ProviderBehaviour, StepBehaviour};
pub use steps::{EXTERNALLY_MANAGED_ANNOTATION, MACHINE_FINALIZER, NODE_NAMESPACE_LABEL, node_name};
