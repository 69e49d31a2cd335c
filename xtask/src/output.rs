//! The output formats of the tasks.

use clap::ValueEnum;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
}
