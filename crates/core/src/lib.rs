//! The pure heart of 5-Spot: what a spec means, and what should happen. Nothing here talks to a
//! cluster, reads a clock or an environment: time comes in as an argument, the world as a value.

mod field;
pub mod schedule;

pub use field::FieldError;
