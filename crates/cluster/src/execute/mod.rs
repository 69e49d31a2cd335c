//! Carrying out decisions: the only code that changes a cluster.
//!
//! Every action is idempotent, and carries the UID or the version that it was decided on wherever a stale read could do
//! harm. The answers go into the caches, so that the next decision never looks at a state before our own write.

mod agent;
mod announce;
mod carry_out;
mod claim;
mod event_series;
mod finalizer;
mod job;
mod machine;
mod node;
mod object;
mod outcome;
mod pod;
mod publish;
mod refusal;
mod status;

pub use announce::{OwnPod, ProgramEvent, announce};
pub use carry_out::{carry_out, report};
pub use event_series::count_again;
pub use job::Basis;
pub use outcome::{Execution, ExecutionError, SkipReason};
