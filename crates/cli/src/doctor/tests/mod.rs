//! Tests of the doctor on an in-memory API server, with the real controller, stand-ins for everything else, and a clock of
//! its own.

mod collected;
mod faults;
mod fixes;
pub(crate) mod fixture;
mod kubectl;
mod manners;
mod pod_answers;
mod table;
mod week;
