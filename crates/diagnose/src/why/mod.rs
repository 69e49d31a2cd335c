//! `5spot why`: what blocks the deletion of an object.
//!
//! [`examine`] is a pure function. It walks from the object in question to what blocks it, through whatever the [`Facts`] hold,
//! and returns either the facts that it still needs or the [`Answer`]. The caller reads those facts from a cluster and calls it
//! again:
//!
//! ```
//! use five_spot_diagnose::why::{Fact, Facts, ObjectId, WalkProgress, Question, examine};
//!
//! let question = Question::about(ObjectId::cluster_scoped("", "Namespace", "shop"));
//! let mut facts = Facts::at("2026-11-17T12:00:00Z".parse().unwrap());
//! let found = loop {
//!     match examine(&question, &facts) {
//!         // A real caller asks its API server.
//!         WalkProgress::Needs(needs) => facts.extend(needs.into_iter().map(|need| (need, Fact::Absent))),
//!         found => break found,
//!     }
//! };
//! assert!(matches!(found, WalkProgress::NeverSeen(_)));
//! ```
//!
//! Each call asks for facts that are not there yet, and for no more than [`MAX_FACTS`] altogether, so that the loop ends however
//! objects refer to each other.

mod absence;
mod answer;
mod api_service;
mod cluster_api;
mod command;
mod controllers;
mod definition;
mod dependents;
mod events;
mod facts;
mod finalizer;
mod finalizer_table;
mod live;
mod namespace;
mod node;
mod pod;
mod pod_start;
mod refusal;
mod remaining;
mod scheduled_machine;
#[cfg(test)]
mod tests;
mod volume;
mod walk;
mod words;

pub(crate) use words::duration;

pub use answer::{Answer, BlockingCause, CauseFix, DeletionState, Step};
pub use facts::{Fact, Facts, Filter, Listed, Need, ObjectId, Owner, ResourceId, Unreadable};
pub use walk::{MAX_DEPTH, MAX_FACTS, MAX_OBJECTS, Question, WalkProgress, examine};
