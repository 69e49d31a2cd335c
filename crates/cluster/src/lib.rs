//! The only crate that talks to Kubernetes, in four layers. Each uses only the layers before it, which a test checks:
//!
//! 1. [`transport`]: clients, the layer that every request passes, errors, discovery and the Lease.
//! 2. [`cache`]: projections of the objects that decisions need, and the watches that keep them up to date.
//! 3. [`view`]: from the caches, or from live reads, to the world that a decision looks at.
//! 4. [`execute`]: carries out decisions; the only code that changes a cluster.
//!
//! The order and the times of reconciles are decided elsewhere.

pub mod cache;
pub mod execute;
pub mod transport;
pub mod view;

pub use cache::ANY_NAMESPACE;
pub use transport::connection::{Connection, Dial, DialError, Now, Raw, Route, WorkloadRules};
pub use transport::http::{Call, Cidr, CidrError, Exchange, RequestObserver};
pub use transport::key::ObjectKey;
pub use view::preflight;
