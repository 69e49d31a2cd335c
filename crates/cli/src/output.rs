//! Output: results on stdout, errors and warnings on stderr.

use five_spot_core::text::bounded;
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

/// A line for the person. If stderr is closed too, the line is lost.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}

/// Text that may hold what a file or a cluster holds, in which nothing can steer a terminal or turn the direction of writing.
pub fn harmless(line: &str) -> String {
    bounded(line, usize::MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_steers_a_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{9b}m\r\n"), "a\\u{1b}[2Jb\\u{9b}m\\r\\n");
        // A line that is shown backwards hides what a pasted command does.
        assert_eq!(
            harmless("a\u{202e}b\u{2066}c\u{2028}d\u{200f}"),
            "a\\u{202e}b\\u{2066}c\\u{2028}d\\u{200f}"
        );
        assert_eq!(harmless("Zürich, 東京 • ok"), "Zürich, 東京 • ok");
    }
}
