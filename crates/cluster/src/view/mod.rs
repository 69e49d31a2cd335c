//! From the caches, or from live reads, to the world that a decision looks at.
//!
//! [`observe`] assembles the world of one object from the caches. [`confirm`] does the same after live reads and returns a
//! [`Confirmed`], which the layer above demands before it creates, deletes or releases anything. [`Observed::decide`] makes
//! the decision. [`look`] does all of that for one object, with a plain connection and without watches.

mod agents;
mod assemble;
mod claim_view;
pub(crate) mod confirm;
mod confirm_claim;
mod confirm_node;
mod look;
mod lookup;
mod node_view;
mod observe;
pub(crate) mod observed;
mod pod_watch;
pub mod preflight;
mod provider_slot;
mod queue_facts;
mod reach;
pub(crate) mod render;
mod watch_status;

pub use agents::{AgentState, agent_states, watch_agents};
pub use confirm::{ConfirmScope, Confirmed, confirm, reread};
pub use look::{LookError, Looked, look};
pub use observe::{glance, observe, time_limit};
pub use observed::Observed;
pub use pod_watch::watch_pods;
pub use queue_facts::{QueueFacts, queue_facts};
pub use watch_status::{ManagementWatch, management_protocol, management_watches};
