//! The style of text output: width, characters, colours.

use crate::environment::ProcessEnvironment;

/// The narrowest text in which a day still has a column for each hour.
pub const MIN_WIDTH: usize = 40;

/// Wider lines are hard to follow, and no terminal is wider by intent.
pub const MAX_WIDTH: usize = 400;

/// The width without a terminal.
pub const DEFAULT_WIDTH: usize = 80;

/// The style of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// No line is longer.
    pub width: usize,
    pub charset: Charset,
    pub colored: bool,
}

/// The characters to draw with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    Unicode,
    Ascii,
}

impl Style {
    /// The style that suits the terminal or file.
    pub fn of(process_environment: &ProcessEnvironment) -> Self {
        let width = process_environment.columns.unwrap_or(DEFAULT_WIDTH);
        Self {
            width: width.clamp(MIN_WIDTH, MAX_WIDTH),
            charset: if process_environment.ascii_only { Charset::Ascii } else { Charset::Unicode },
            colored: process_environment.stdout_is_terminal && !process_environment.no_color,
        }
    }

    /// The text in a style of the terminal, if there are colours at all.
    pub fn paint(self, style: anstyle::Style, text: &str) -> String {
        if self.colored && !text.is_empty() {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_owned()
        }
    }
}
