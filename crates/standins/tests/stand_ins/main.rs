//! The stand-ins around the embedded API, under virtual time.

mod drain_rules;
mod draining;
mod growing;
mod quiet;
mod same_seed;
mod trouble;
mod workloads;
mod world;
