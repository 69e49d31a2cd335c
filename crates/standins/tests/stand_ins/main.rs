//! The stand-ins on the in-memory API server, in virtual time.

mod drain_rules;
mod draining;
mod fixture;
mod growing;
mod quiet;
mod same_seed;
mod trouble;
mod workloads;
