//! The way to every cluster: clients, the layer that each request passes, errors, discovery and the Lease.

pub(crate) mod connection;
pub(crate) mod core_kinds;
pub(crate) mod credential;
pub(crate) mod error;
pub mod http;
pub(crate) mod instance_lease;
pub(crate) mod key;
pub(crate) mod kinds;
pub(crate) mod kubeconfig;
pub(crate) mod lease;
pub(crate) mod operation;
pub(crate) mod repeat;
pub(crate) mod valid_name;

pub use connection::{Connection, Dial, DialError, Now, Raw, Route, WorkloadRules};
pub use credential::CredentialExpiries;
pub use error::CallError;
pub use instance_lease::{Announcement, InstanceLease, InstanceLeases, WatchedInstance};
pub use key::ObjectKey;
pub use kubeconfig::workload_kubeconfig;
pub use lease::{LeaseApi, LeaseError, LeaseRecord, StoredLease, WatchedLease};
pub use operation::{Operation, TargetKind, Verb};
