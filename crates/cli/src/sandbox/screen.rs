//! The live timeline, fitted to the size of the terminal and redrawn continuously.

use crate::range::Range;
use crate::sandbox::lines::{moment, words};
use crate::sandbox::rows::rows;
use crate::sandbox::text::{self, dim};
use crate::sandbox::trace::Trace;
use crate::style::{MAX_WIDTH, MIN_WIDTH, Style};
use anstyle::Effects;
use jiff::Timestamp;
use std::io::{self, Write};

/// Switches to the alternate screen and hides the cursor, so that the previous contents of the terminal are
/// restored at exit.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
/// Turns line wrapping off: lines can be longer than the terminal if it has just become narrower, and are
/// cut.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const CLEAR_REST_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The contents of one frame.
pub struct Frame<'a> {
    pub trace: &'a Trace,
    pub range: Range,
    pub now: Timestamp,
    /// Simulated seconds per real second.
    pub speed: u32,
    /// The `KUBECONFIG=` line.
    pub kubeconfig_line: &'a str,
}

/// The terminal while it shows the timeline. Dropping it restores the terminal, after an error too.
#[derive(Debug)]
pub struct Screen(());

impl Screen {
    pub fn enter() -> io::Result<Self> {
        let screen = Self(());
        put(&format!("{ENTER}{NO_WRAP}"))?;
        Ok(screen)
    }

    /// Takes `&self`, so that nothing is drawn before the alternate screen is entered.
    #[expect(clippy::unused_self, reason = "drawing requires the alternate screen")]
    pub fn draw(&self, frame: &Frame<'_>, style: Style, (columns, lines): (usize, usize)) -> io::Result<()> {
        let style = Style { width: columns.clamp(MIN_WIDTH, MAX_WIDTH), ..style };
        let mut text = String::from(HOME);
        for (index, line) in compose(frame, style, lines).iter().enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str(line);
            text.push_str(CLEAR_REST_OF_LINE);
        }
        text.push_str(CLEAR_BELOW);
        put(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = put(&format!("{WRAP}{LEAVE}"));
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The lines of a frame, at most as many as fit: the clock, the chart, and the latest events.
pub fn compose(frame: &Frame<'_>, style: Style, height: usize) -> Vec<String> {
    let range = Range { from: frame.range.from, to: frame.range.to.max(frame.now) };
    let speed = if frame.now < frame.range.to { format!("{}x", frame.speed) } else { "real time".to_owned() };
    let clock = format!("5spot sandbox  {}  {speed}", moment(frame.now));
    let mut lines = vec![style.paint(anstyle::Style::new().effects(Effects::BOLD), &clock), String::new()];
    lines.extend(text::chart(&rows(frame.trace, range, frame.now), range, style));
    lines.push(String::new());
    // The clock and the `KUBECONFIG=` line are always shown.
    let room = height.saturating_sub(1);
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1).max(1));
        lines.push(dim(style, "(enlarge the terminal to see more)"));
        lines.truncate(room.max(1));
    }
    let left = room.saturating_sub(lines.len());
    lines.extend(latest(frame.trace, left, style));
    lines.resize(room.max(1), String::new());
    lines.push(dim(style, &format!("{}   Ctrl-C to quit", frame.kubeconfig_line)));
    lines
}

/// The latest events, cut to the width of the terminal.
fn latest(trace: &Trace, number: usize, style: Style) -> Vec<String> {
    let entries: Vec<_> = trace.with_transitions().collect();
    let mut lines: Vec<String> = entries
        .into_iter()
        .rev()
        .filter_map(|(entry, transition)| words(entry, transition, style))
        .take(number)
        .collect();
    lines.reverse();
    lines
}
