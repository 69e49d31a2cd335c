//! Many machines: several instances that share them, and the brake.

#![allow(clippy::float_cmp, reason = "metrics are whole numbers")]

mod brake;
mod campaign;
mod claims;
mod cluster;
mod instance;
mod referee;
#[path = "../support/seeds.rs"]
mod seeds;
mod shards;
