//! Output: results on stdout, errors and warnings on stderr.

use std::io::{self, Write};

/// A reader that has seen enough, such as `head`, is no failure.
pub fn show(text: &str) -> io::Result<()> {
    show_next(text).map(|_| ())
}

/// The same for a command that has more to show later. False if nobody reads it any more.
pub fn show_next(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// A line for the person. If nobody listens on stderr either, there is nobody left to tell.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}

/// Text that may hold what a file or a cluster holds, in which nothing can steer a terminal.
pub fn harmless(line: &str) -> String {
    let mut harmless = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() {
            harmless.extend(c.escape_default());
        } else {
            harmless.push(c);
        }
    }
    harmless
}
