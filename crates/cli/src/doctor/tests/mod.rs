//! Tests of the doctor on an in-memory API server, with the real controller, stand-ins for everything else, and a clock of
//! its own.

mod fixes;
mod kubectl;
mod manners;
mod week;
mod world;
