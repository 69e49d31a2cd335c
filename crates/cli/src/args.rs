//! The command line.

use crate::{preview, sandbox};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Lends machines to Kubernetes clusters by the clock.
#[derive(Debug, Parser)]
#[command(name = "5spot", version, propagate_version = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

/// What there is to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Preview(preview::Args),
    Sandbox(sandbox::Args),
}

/// How a command ended, for whoever called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Fine,
    /// Something at work failed, or something was found: a file that cannot be read, a machine that was not where it
    /// was wanted.
    Failed,
    /// Wrong usage or invalid input: another try needs another command line or another file.
    Invalid,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
            // What clap exits with on a flag that it does not know.
            Outcome::Invalid => Self::from(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
