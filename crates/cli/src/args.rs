//! The command line.

use crate::{completion, debug_bundle, doctor, explain, kubeconfig, manual, preview, sandbox, version, why};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Lends physical machines to Cluster API clusters on a schedule.
///
/// Without a command, 5spot runs the controller and accepts its flags: see 5spot-controller --help.
#[derive(Debug, Parser)]
#[command(name = "5spot", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Completion(completion::Args),
    Doctor(doctor::Args),
    Explain(explain::Args),
    Kubeconfig(kubeconfig::Args),
    Man(manual::Args),
    Preview(preview::Args),
    Sandbox(sandbox::Args),
    Version(version::Args),
    Why(why::Args),
    DebugBundle(debug_bundle::Args),
}

/// The name under which `kubectl` starts the program for `kubectl 5spot`.
const PLUGIN: &str = "kubectl-5spot";

/// Returns true if `kubectl` has started the program as its plugin.
pub fn is_plugin(words: &[OsString]) -> bool {
    let program = words.first().map(Path::new).and_then(Path::file_stem);
    program.is_some_and(|program| program == PLUGIN)
}

/// Parses the command line. On an error, prints a message and exits.
pub fn parse(words: Vec<OsString>) -> Args {
    let mut command = Args::command();
    if is_plugin(&words) {
        command = command.bin_name("kubectl 5spot");
    }
    match Args::from_arg_matches(&command.get_matches_from(words)) {
        Ok(args) => args,
        Err(error) => error.exit(),
    }
}

/// Returns true if there is no subcommand. Then the controller starts: `5spot` and `5spot-controller` are the
/// same program. The `kubectl` plugin never starts the controller.
pub fn are_for_the_controller(words: &[OsString]) -> bool {
    if is_plugin(words) {
        return false;
    }
    match words.get(1).and_then(|word| word.to_str()) {
        Some("-h" | "--help" | "-V" | "--version") => false,
        Some(word) => word.starts_with('-'),
        None => words.len() < 2,
    }
}

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Fine,
    /// The command failed or found a problem, such as a file that cannot be read or a machine in the wrong
    /// state.
    Failed,
    /// The command line or the input is invalid: the user must change one of them.
    Invalid,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
            // The exit status of clap for an unknown flag.
            Outcome::Invalid => Self::from(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_command_it_is_the_controller() {
        let are_for_the_controller =
            |line: &str| are_for_the_controller(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in
            ["5spot", "5spot --watch-namespace lab", "5spot -v", "5spot --enable-leader-election=true"]
        {
            assert!(are_for_the_controller(line), "{line}");
        }
        for line in [
            "5spot preview -f x",
            "5spot sandbox",
            "5spot help",
            "5spot -h",
            "5spot --version",
            "5spot sandbax",
            "/usr/local/bin/kubectl-5spot",
            "kubectl-5spot --watch-namespace lab",
        ] {
            assert!(!are_for_the_controller(line), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
