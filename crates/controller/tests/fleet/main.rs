//! Many machines: several instances that share them, and the brake.

#![allow(clippy::float_cmp, reason = "metrics are whole numbers")]

mod brake;
mod cluster;
mod instance;
mod shards;
