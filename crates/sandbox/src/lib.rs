//! A Kubernetes API in memory: what runs 5-Spot with nothing to install, and gives its tests virtual time
//! and faults.

pub mod schema;
