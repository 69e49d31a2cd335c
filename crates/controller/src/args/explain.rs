//! An addition to the errors of clap: a value that came from a variable.

use super::Args;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::{OsStr, OsString};

/// Adds what helps to a refused command line. `arguments` are those that were refused.
#[must_use]
pub fn explain(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if let Some(tip) = tip(&error, arguments) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    // As in `--flag <VALUE>`, `--flag[=<VALUE>]` and `--flag=value`.
    let flag = argument.split([' ', '[', '=']).next()?;
    if error.kind() == ErrorKind::UnknownArgument {
        return None;
    }
    let variable = variable_of(flag)?;
    let on_command_line = arguments.iter().any(|argument| is_flag(argument, flag));
    (!on_command_line).then(|| format!("the value comes from the environment variable {variable}"))
}

fn is_flag(argument: &OsStr, flag: &str) -> bool {
    let argument = argument.to_string_lossy();
    argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

fn variable_of(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let command = Args::command();
    let argument = command.get_arguments().find(|argument| argument.get_long() == Some(name))?;
    Some(argument.get_env()?.to_string_lossy().into_owned())
}
