//! Tests of the doctor on an in-memory API server, with the real controller, stand-ins for everything else, and a clock of
//! its own.

mod collected;
mod faults;
mod fixes;
mod kubectl;
mod manners;
mod pod_answers;
mod table;
mod week;
pub(crate) mod world;
