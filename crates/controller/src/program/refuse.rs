//! The answer to `--help` and to a wrong command line.

use crate::logging::{LogFormat, log_json};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing::error;

/// Wrong usage: what clap itself exits with.
const USAGE: u8 = 2;

/// Prints the help that was asked for, or what is wrong with the command line. The latter is a log line like any other
/// without a terminal, so that it is collected with the lines of a pod.
pub(super) fn refuse(refusal: &clap::Error, format: LogFormat) -> ExitCode {
    if !refusal.use_stderr() {
        // A reader that has gone away, as in `--help | head`, is no failure.
        let _ = refusal.print();
        return ExitCode::SUCCESS;
    }
    if format == LogFormat::Text || std::io::stderr().is_terminal() {
        let _ = refusal.print();
    } else {
        let text = refusal.to_string();
        let message = text.trim().trim_start_matches("error: ");
        log_json(std::io::stderr, || error!("{message}"));
    }
    ExitCode::from(USAGE)
}

/// The format that a command line asks for which could not be understood as a whole.
pub(super) fn requested_format(arguments: &[OsString]) -> LogFormat {
    let is_text = |value: &OsString| value == LogFormat::Text.as_str();
    let flag = arguments.iter().position(|argument| argument == "--log-format");
    let separate = flag.and_then(|index| arguments.get(index + 1)).is_some_and(is_text);
    let joined = arguments.iter().any(|argument| argument == "--log-format=text");
    let variable = std::env::var_os("RUST_LOG_FORMAT").as_ref().is_some_and(is_text);
    if separate || joined || variable { LogFormat::Text } else { LogFormat::Json }
}
