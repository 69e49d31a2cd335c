//! The program, run with nothing around it that a test did not put there. For more than one test program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The output of the program.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// The root of the workspace, so that `examples/...` is where the documentation says.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run of `5spot` without terminal, locale or other settings.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
    command.args(words).current_dir(root()).env_clear();
    command
}

/// Runs `5spot` with these arguments and this standard input.
pub fn five_spot_of(input: impl AsRef<[u8]>, words: &[&str]) -> Answer {
    let mut child = command(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may refuse the words before it reads anything, and stops reading where it has seen enough.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
    child.wait_with_output().expect("the program ends").into()
}
