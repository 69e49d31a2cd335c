//! `5spot`: the command-line tools, and without a subcommand the controller. Flags are parsed before any I/O.

mod answer;
mod args;
mod cluster_access;
mod completion;
mod controller_settings;
mod debug_bundle;
mod doctor;
mod element;
mod environment;
mod explain;
mod kubeconfig;
mod manifest;
mod manual;
mod output;
mod preview;
mod range;
mod sandbox;
mod server_clock;
mod style;
mod validity;
mod version;
mod why;
mod wording;
mod wrap;

use args::Command;
use environment::ProcessEnvironment;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if args::are_for_the_controller(&words) {
        return five_spot_controller::program::main(words);
    }
    if completion::is_requested(&words) {
        return completion::answer(&words).into();
    }
    match args::parse(words).command {
        Command::Completion(args) => completion::run(&args).into(),
        Command::Doctor(args) => doctor::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Explain(args) => explain::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Kubeconfig(args) => kubeconfig::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Man(args) => manual::run(&args).into(),
        Command::Preview(args) => preview::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Sandbox(args) => sandbox::run(&args, &ProcessEnvironment::observe()).into(),
        Command::DebugBundle(args) => debug_bundle::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Version(args) => version::run(&args, &ProcessEnvironment::observe()).into(),
        Command::Why(args) => why::run(&args, &ProcessEnvironment::observe()).into(),
    }
}
