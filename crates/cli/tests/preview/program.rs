//! The program, run with nothing around it that a test did not put there.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What the program had to say.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// What it printed, given that all was well.
    pub fn text(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// What it printed, as JSON.
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.text()).expect("JSON on stdout")
    }

    /// What it complained about, given that it gave nothing else.
    pub fn refusal(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        self.stderr
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

/// `5spot` with these words.
pub fn five_spot(words: &[&str]) -> Answer {
    answer(command(words).stdin(Stdio::null()))
}

/// `5spot preview` with the words of a line.
pub fn preview(line: &str) -> Answer {
    let words: Vec<&str> = std::iter::once("preview").chain(line.split_whitespace()).collect();
    five_spot(&words)
}

/// `5spot preview -f -` with an input and the further words of a line.
pub fn preview_of(input: impl AsRef<[u8]>, line: &str) -> Answer {
    let words: Vec<&str> = ["preview", "-f", "-"].into_iter().chain(line.split_whitespace()).collect();
    let mut child = command(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It stops reading where it has seen enough.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
    read(child.wait_with_output().expect("the program ends"))
}

pub fn answer(command: &mut Command) -> Answer {
    read(command.output().expect("the program starts"))
}

fn read(output: std::process::Output) -> Answer {
    Answer {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
    }
}

/// A directory with files in it, gone after the test.
pub fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}
