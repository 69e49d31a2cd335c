//! `5spot`: the tools for people, and without a command the controller. Flags are parsed first; only then is the
//! world touched.

mod args;
mod element;
mod environment;
mod manifest;
mod output;
mod preview;
mod range;
mod sandbox;
mod style;
mod validity;
mod wording;
mod wrap;

use args::{Args, Command};
use clap::Parser;
use environment::ProcessEnvironment;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if args::are_for_the_controller(&words) {
        return five_spot_controller::program::main(words);
    }
    match Args::parse_from(words).command {
        Command::Preview(args) => preview::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Sandbox(args) => sandbox::run(&args, &ProcessEnvironment::observe()).into(),
    }
}
