//! What happens to a machine, told once: each [`Scenario`] is a function of a [`World`], and is played on the embedded
//! API in virtual time and on a real control plane.
//!
//! After each the [`oracles`] are asked: is everything where it should be, was nothing made twice, is nothing left over,
//! does status tell the truth, and is there silence. [`faults`] plays a scenario again and again, and each time lets
//! something else go wrong.

mod ask;
pub mod chronicle;
pub mod embedded;
pub mod faults;
pub mod hostile;
pub mod kinds;
pub mod matrix;
pub mod oracles;
mod perform;
mod plays;
mod scenario;
mod snapshot;
mod steps;
mod subject;
mod surroundings;
mod world;

pub use perform::{Performance, in_order, perform, perform_cell};
pub use plays::all;
pub use scenario::{Ending, Needs, Scenario};
pub use snapshot::Snapshot;
pub use steps::Steps;
pub use subject::{Subject, condition, merge};
pub use world::{ApiServer, Impairment, Pace, World, Write, WrongServer};
