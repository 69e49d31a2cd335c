//! The real program, started as a process of its own with an environment of its own.

mod arguments;
mod hostile;
mod process;
#[path = "../served/mod.rs"]
mod served;
mod serving;
mod starting;
mod stopping;
