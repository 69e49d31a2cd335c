//! The program itself: real processes, the real process connector, and an in-memory Kubernetes API behind TLS.

mod agent;
mod cgroups;
mod firing;
mod host;
mod oneshot;
mod reconfiguring;
mod server;
mod unavailable;
