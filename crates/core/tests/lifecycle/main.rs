//! The lifecycle as a whole: `decide` in a small simulated cluster.

mod claims;
mod scenarios;
mod simulation;
mod walk;
mod world_properties;
