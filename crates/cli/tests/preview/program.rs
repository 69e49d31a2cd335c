//! Runs the program and collects its output.

pub use crate::running::{Answer, command, root};

use crate::running::five_spot_of;
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

impl Answer {
    /// Its standard output, after checking that it succeeded.
    pub fn text(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Its standard output as JSON.
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.text()).expect("JSON on stdout")
    }

    /// Its standard error, after checking the exit code and that standard output is empty.
    pub fn refusal(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{self:?}");
        self.stderr
    }
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
    five_spot_of(input, &words)
}

/// Runs a command and collects its output.
pub fn answer(command: &mut Command) -> Answer {
    command.output().expect("the program starts").into()
}

/// A directory with files in it, gone after the test.
pub fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}
