//! Scenarios in the life of a machine: each [`Scenario`] is a function of an [`Environment`], and runs on the in-memory
//! API in virtual time and on a real control plane.
//!
//! After each scenario the [`oracles`] check the end state, that nothing was created twice or left over, that the
//! status is correct, and that no further writes follow. [`faults`] runs a scenario many times, each time with another
//! fault.

mod agent_configs;
mod catalog;
mod claims;
mod environment;
pub mod faults;
mod fixtures;
pub mod history;
pub mod hostile;
pub mod in_memory;
pub mod kinds;
pub mod matrix;
mod objects;
pub mod oracles;
mod runner;
mod scenario;
mod size;
mod snapshot;
mod steps;
mod subject;

pub use catalog::all;
pub use environment::{Environment, Impairment, LeaderFault, Pace, ServerState, Write, WrongServer};
pub use runner::{ScenarioResult, in_order, run_matrix_cell, run_scenario};
pub use scenario::{Controllers, Ending, Needs, Scenario};
pub use size::Size;
pub use snapshot::Snapshot;
pub use steps::Steps;
pub use subject::{Subject, condition, merge};
