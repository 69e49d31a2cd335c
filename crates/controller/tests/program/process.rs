//! A process of the program, what it is given, and what it says.

use serde_json::Value;
use std::path::Path;
use std::process::Output;
use std::time::Duration;
use tokio::process::Command;

/// Only for a program that never ends: on a busy machine a test may take its time.
pub const GUARD: Duration = Duration::from_mins(1);

/// The program with nothing in its environment, and a home directory with no kubeconfig in it.
pub fn program(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot-controller"));
    command.env_clear().env("HOME", home).kill_on_drop(true);
    command
}

/// The output of a program that ends by itself.
#[derive(Debug)]
pub struct ProgramOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl ProgramOutput {
    /// The fields of the line of standard output with this message.
    pub fn fields(&self, message: &str) -> Value {
        let lines = self.stdout.lines().map(|line| line_of(line)["fields"].clone());
        lines.into_iter().find(|fields| fields["message"] == message).unwrap_or_default()
    }
}

/// A log line.
pub fn line_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text:?} is one JSON object: {error}"))
}

/// Runs the program where no cluster can be found, so that it ends by itself.
pub async fn run(arguments: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = program(home.path());
    command.args(arguments).envs(variables.iter().copied());
    let output = tokio::time::timeout(GUARD, command.output()).await.expect("it ends");
    output.expect("it starts").into()
}
