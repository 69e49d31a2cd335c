//! Several controllers on one in-memory API in virtual time, of which one leads.

mod campaign;
mod cluster;
mod failover;
mod lease;
mod link;
mod replica;
#[path = "../support/seeds.rs"]
mod seeds;
