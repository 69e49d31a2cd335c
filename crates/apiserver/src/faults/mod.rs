//! Faults at the door of the API: what a network and a busy server can do to a request or a watch.
//!
//! Rules say which requests and when; a seed decides what is left to chance. Every request that passes the door is
//! written down with what became of it, so that a test can count writes and aim at each of them in turn.

mod plan;
mod service;
mod watch;

pub use plan::{Fault, FaultPlan, Outcome, RequestKind, Rule, Seen, Trigger, WatchFault};
pub use service::FaultyService;
