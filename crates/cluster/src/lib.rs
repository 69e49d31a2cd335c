//! The only crate that talks to Kubernetes: every request goes through one [`door`], what is seen is boiled down to
//! the facts that decisions need, and what was decided is carried out.
//!
//! A [`Fleet`] holds what is known. [`Fleet::observe`] makes a world of it, [`Fleet::refresh`] asks the API server
//! itself before anything that cannot be taken back, and [`Fleet::carry_out`] does what was decided. When that happens,
//! and to which object first, is not decided here.

// Clippy takes `shelf` for a slip of the pen for `self`.
#![allow(clippy::similar_names)]

mod cache;
mod execute;
mod transport;
mod view;

pub use cache::cause::Cause;
pub use cache::fleet::{Fleet, FleetSettings};
pub use execute::Setback;
pub use execute::announce::{Announcement, OwnPod, announce};
pub use transport::connection::{Connection, Dial, DialError, Now, Raw, Route, WorkloadRules};
pub use transport::error::CallError;
pub use transport::http as door;
pub use transport::http::{Call, Cidr, CidrError, Exchange, Witness};
pub use transport::key::ObjectKey;
pub use transport::lease::{LeaseApi, LeaseError, LeaseRecord, StoredLease, WatchedLease};
pub use view::observe::{ANY_NAMESPACE, Observation, Observed};
pub use view::outcome::{Emergency, Retry, Urgency};
pub use view::preflight;
pub use view::refresh::Original;
pub use view::standing::ManagementWatch;
