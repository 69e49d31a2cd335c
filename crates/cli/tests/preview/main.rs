//! `5spot preview` as a person or a script meets it: the program is run, and its answers are read.

mod bad_input;
mod data;
mod documentation;
mod machine;
mod picture;
mod program;
#[path = "../running/mod.rs"]
mod running;
mod text;
