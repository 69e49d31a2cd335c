//! `5spot`: the tools for people. Flags are parsed first; only then is the world touched.

mod args;
mod manifest;
mod preview;
mod surroundings;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;
use surroundings::Surroundings;

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Preview(args) => preview::run(&args, &Surroundings::observe()).into(),
    }
}
