//! The only crate that talks to Kubernetes: every request goes through one [`door`], what is seen is boiled down to
//! the facts that decisions need, and what was decided is carried out.
//!
//! A [`Fleet`] holds what is known. [`Fleet::observe`] makes a world of it, [`Fleet::refresh`] asks the API server
//! itself before anything that cannot be taken back, and [`Fleet::carry_out`] does what was decided. When that happens,
//! and to which object first, is not decided here.

// Clippy takes `shelf` for a slip of the pen for `self`.
#![allow(clippy::similar_names)]

mod announce;
mod cause;
mod connection;
pub mod door;
mod drain_rules;
mod drift;
mod error;
mod execute;
mod fleet;
mod key;
mod kinds;
mod kubeconfig;
mod lease;
mod lookup;
mod memory;
mod observe;
mod outcome;
mod own_namespace;
pub mod preflight;
mod project;
mod reachable;
mod refresh;
mod render;
mod repeat;
mod shelf;
mod standing;
mod valid_name;
mod watch;
mod workload;

pub use announce::{Announcement, OwnPod, announce};
pub use cause::Cause;
pub use connection::{Connection, Dial, DialError, Now, Raw, Route, WorkloadRules};
pub use door::{Call, Cidr, CidrError, Exchange, Witness};
pub use error::CallError;
pub use execute::Setback;
pub use fleet::{Fleet, FleetSettings};
pub use key::ObjectKey;
pub use lease::{LeaseApi, LeaseError, LeaseRecord, StoredLease, WatchedLease};
pub use observe::{ANY_NAMESPACE, Observation, Observed};
pub use outcome::{Emergency, Retry, Urgency};
pub use refresh::Original;
pub use standing::ManagementWatch;
