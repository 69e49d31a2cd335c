//! `5spot completion`: scripts that let a shell complete commands, flags, and names from the cluster.
//!
//! The scripts are short. They run `5spot __complete WORDS...` for the words up to the cursor and show what it prints, in the
//! protocol of cobra: a candidate, a tab and a description on each line, and at last a colon and a number that says what the shell
//! does besides. `kubectl` uses this protocol for its plugins as well.

mod candidates;
mod names;

use crate::args::{Outcome, is_plugin};
use crate::output::{complain, show};
use clap::ValueEnum;
use std::ffi::OsString;

/// The word after the name of the program by which a script asks for candidates.
const REQUEST: &str = "__complete";

/// Print a script for shell completion
///
/// Completes commands, flags and files, and with the kubeconfig of the command line the names of ScheduledMachines,
/// namespaces, contexts, clusters and, for 5spot why, all objects. If the cluster does not respond within two seconds, no
/// names are offered.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The shell; kubectl for `kubectl 5spot`
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(5spot completion bash)                                         in ~/.bashrc
  5spot completion zsh > \"${fpath[1]}/_5spot\"                             and start zsh again
  5spot completion fish > ~/.config/fish/completions/5spot.fish
  5spot completion kubectl > ~/.local/bin/kubectl_complete-5spot          and make it executable";

/// The programs that complete words.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Kubectl,
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("scripts/5spot.bash"),
            Self::Zsh => include_str!("scripts/5spot.zsh"),
            Self::Fish => include_str!("scripts/5spot.fish"),
            Self::Kubectl => include_str!("scripts/kubectl_complete-5spot"),
        }
    }
}

/// Prints a script.
pub fn run(args: &Args) -> Outcome {
    print(args.shell.script())
}

/// True if a script asks for candidates.
pub fn is_requested(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == REQUEST)
}

/// Prints the candidates for the last of the words.
pub fn answer(words: &[OsString]) -> Outcome {
    let mut line = vec![words.first().cloned().unwrap_or_default()];
    line.extend(words.iter().skip(2).cloned());
    print(&candidates::complete(line, is_plugin(words)))
}

fn print(text: &str) -> Outcome {
    match show(text) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: {error}"));
            Outcome::Failed
        }
    }
}
