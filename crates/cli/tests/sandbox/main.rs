//! `5spot sandbox` as a person or a script meets it: the program is run, and its answers are read.

mod agreement;
mod bad_input;
mod demo;
mod live;
mod own_machines;
mod program;
#[path = "../running/mod.rs"]
mod running;
