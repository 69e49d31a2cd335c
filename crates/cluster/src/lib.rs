//! The only crate that talks to Kubernetes: every request goes through one [`door`], what is seen is boiled down to
//! the facts that decisions need, and what was decided is carried out.

mod connection;
pub mod door;

pub use connection::{Connection, Dial, DialError, Now, Raw, Route};
pub use door::{Call, Exchange, Witness};
