//! A line that shows progress, on a terminal only.

use std::io::{self, IsTerminal, Write};

/// A line on standard error, overwritten with each step and removed at the end.
#[derive(Debug)]
pub struct ProgressLine {
    is_terminal: bool,
}

impl ProgressLine {
    pub fn on_stderr() -> Self {
        Self { is_terminal: io::stderr().is_terminal() }
    }

    pub fn show(&self, text: &str) {
        if self.is_terminal {
            // Nobody misses it if it cannot be written.
            let _ = write!(io::stderr(), "\r\x1b[2K{text}").and_then(|()| io::stderr().flush());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.show("");
    }
}
