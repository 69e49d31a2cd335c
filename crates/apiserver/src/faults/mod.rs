//! Fault injection: failures of the network or of a busy server, for requests and watches.
//!
//! Rules select requests and faults; a seed makes random choices reproducible. Every request is recorded with
//! its outcome, so that a test can count the writes and inject a fault into each of them in turn.

mod plan;
mod service;
mod watch;

pub use plan::{FaultPlan, FaultRule, InjectedFault, RequestKind, RequestOutcome, Seen, Trigger, WatchFault};
pub use service::FaultyService;
