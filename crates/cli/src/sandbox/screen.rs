//! The live timeline: as much of everything as the terminal has room for, drawn anew again and again.

use crate::range::Range;
use crate::sandbox::lines::{moment, words};
use crate::sandbox::rows::rows;
use crate::sandbox::text::{self, dim};
use crate::sandbox::trace::Trace;
use crate::style::{MAX_WIDTH, MIN_WIDTH, Style};
use anstyle::Effects;
use jiff::Timestamp;
use std::io::{self, Write};

/// The other screen without a cursor, so that what was on the terminal is there again afterwards.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
/// Lines may be longer than the terminal when it has just become narrower: they are cut, not wrapped.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const CLEAR_REST_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The contents of one frame.
pub struct Frame<'a> {
    pub trace: &'a Trace,
    pub range: Range,
    pub now: Timestamp,
    /// Simulated seconds in a real one.
    pub speed: u32,
    /// The line to paste.
    pub kubeconfig_line: &'a str,
}

/// The terminal while it shows the timeline. It is left as it was found, whatever happens.
#[derive(Debug)]
pub struct Screen(());

impl Screen {
    pub fn enter() -> io::Result<Self> {
        let screen = Self(());
        put(&format!("{ENTER}{NO_WRAP}"))?;
        Ok(screen)
    }

    /// Needs the screen: on any other there is something that a person wants to keep.
    #[expect(clippy::unused_self, reason = "whoever draws has entered")]
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
        // If the terminal is gone, it needs no tidying up.
        let _ = put(&format!("{WRAP}{LEAVE}"));
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The lines of a frame, at most as many as fit: the clock, the chart, and under it the latest that happened.
pub fn compose(frame: &Frame<'_>, style: Style, height: usize) -> Vec<String> {
    let range = Range { from: frame.range.from, to: frame.range.to.max(frame.now) };
    let speed = if frame.now < frame.range.to { format!("{}x", frame.speed) } else { "real time".to_owned() };
    let clock = format!("5spot sandbox  {}  {speed}", moment(frame.now));
    let mut lines = vec![style.paint(anstyle::Style::new().effects(Effects::BOLD), &clock), String::new()];
    lines.extend(text::chart(&rows(frame.trace, range, frame.now), range, style));
    lines.push(String::new());
    // The clock above and the way in below stay whatever else has no room.
    let room = height.saturating_sub(1);
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1).max(1));
        lines.push(dim(style, "(the terminal is too low for all of it)"));
        lines.truncate(room.max(1));
    }
    let left = room.saturating_sub(lines.len());
    lines.extend(latest(frame.trace, left, style));
    lines.resize(room.max(1), String::new());
    lines.push(dim(style, &format!("{}   Ctrl-C ends", frame.kubeconfig_line)));
    lines
}

/// The last lines of what happened, cut to the width.
fn latest(trace: &Trace, number: usize, style: Style) -> Vec<String> {
    let told: Vec<_> = trace.told().collect();
    let mut lines: Vec<String> = told
        .into_iter()
        .rev()
        .filter_map(|(entry, transition)| words(entry, transition, style))
        .take(number)
        .collect();
    lines.reverse();
    lines
}
