//! Diagnosis as pure functions: from facts that were collected in a cluster to findings and explanations.
//!
//! - [`explain`]: why a `ScheduledMachine` is in its state, and what happens next.
//! - [`doctor`]: everything that is wrong with an installation and its machines.
//! - [`why`]: what blocks the deletion of any object.
//! - [`redact`]: removes credentials from what leaves a cluster in a bundle.
//! - [`shell`]: the words of the commands in answers.
//!
//! Nothing in here talks to a cluster, reads a clock or the environment. The command line collects the facts and prints the
//! answers; the types of the answers serialize to the documented JSON.

pub mod controller_config;
pub mod doctor;
pub mod explain;
pub mod object;
pub mod redact;
pub mod shell;
pub mod why;
