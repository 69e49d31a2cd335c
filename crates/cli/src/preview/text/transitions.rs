//! The times at which a machine starts or stops being wanted, in local time and in UTC.

use crate::preview::forecast::{Forecast, Window};
use crate::preview::text::paint::Painter;
use crate::wording;
use crate::wrap::wrap;
use jiff::{SignedDuration, Timestamp};
use std::fmt::Write as _;

/// The number of transitions shown: two weeks of working days. The chart shows the rest, and the other
/// formats list all.
const MOST: usize = 20;

/// A moment at which a machine becomes wanted or unwanted.
struct Transition<'a> {
    at: Timestamp,
    goes: Goes<'a>,
    /// The time until the next transition, if that is within the range.
    lasts: Option<SignedDuration>,
}

enum Goes<'a> {
    Up(&'a Window),
    Down,
}

pub fn lines(forecast: &Forecast, painter: Painter) -> Vec<String> {
    let transitions = transitions(&forecast.windows);
    if transitions.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), painter.bold("Transitions")];
    let rows: Vec<Row<'_>> =
        transitions.iter().take(MOST).map(|transition| Row::new(forecast, transition)).collect();
    lines.extend(lay_out(&rows, painter));
    if transitions.len() > MOST {
        let more = format!("and {} more; -o json lists all of them", transitions.len() - MOST);
        lines.extend(wrap(&more, painter.style.width, 2, 2).iter().map(|line| painter.dim(line)));
    }
    lines
}

/// Returns the transitions. The edge of a window at the edge of the range is not one.
fn transitions(windows: &[Window]) -> Vec<Transition<'_>> {
    let mut transitions = Vec::new();
    for (index, window) in windows.iter().enumerate() {
        if !window.began_before {
            let lasts = (!window.goes_on).then(|| window.end.duration_since(window.start));
            transitions.push(Transition { at: window.start, goes: Goes::Up(window), lasts });
        }
        if !window.goes_on {
            let lasts = windows.get(index + 1).map(|next| next.start.duration_since(window.end));
            transitions.push(Transition { at: window.end, goes: Goes::Down, lasts });
        }
    }
    transitions
}

/// The texts of a line.
struct Row<'a> {
    cells: [String; 4],
    reason: String,
    /// True if the fourth column is a duration.
    lasts: bool,
    window: Option<&'a Window>,
}

impl<'a> Row<'a> {
    fn new(forecast: &Forecast, transition: &Transition<'a>) -> Self {
        let (word, window, reason) = match transition.goes {
            Goes::Up(window) => ("up", Some(window), window.causes.to_string()),
            Goes::Down => ("down", None, String::new()),
        };
        let lasts = match (&transition.goes, transition.lasts) {
            (Goes::Up(_) | Goes::Down, Some(lasts)) => wording::duration(lasts),
            (Goes::Up(_), None) => "ongoing".to_owned(),
            (Goes::Down, None) => String::new(),
        };
        let cells =
            [word.to_owned(), wording::moment_in(&forecast.zone, transition.at), utc(transition.at), lasts];
        Self { cells, reason, lasts: transition.lasts.is_some(), window }
    }

    fn paint(&self, text: &str, painter: Painter) -> String {
        match self.window {
            Some(window) => painter.cause(window.causes, text),
            None => painter.dim(text),
        }
    }
}

/// A time such as `2026-11-02T14:00Z`, with seconds only if they are not zero.
fn utc(instant: Timestamp) -> String {
    let text = instant.to_string();
    match text.strip_suffix(":00Z") {
        Some(minutes) => format!("{minutes}Z"),
        None => text,
    }
}

const HEADINGS: [&str; 4] = ["", "local", "UTC", "for"];
const INDENT: usize = 2;
const GAP: usize = 2;

/// A table if it fits; otherwise each row is wrapped on its own.
fn lay_out(rows: &[Row<'_>], painter: Painter) -> Vec<String> {
    let mut widths = HEADINGS.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.len());
        }
    }
    let table = Table { widths, painter };
    if table.columns() <= painter.style.width {
        let heading = painter.dim(&table.line(&table.first(""), HEADINGS));
        std::iter::once(heading).chain(rows.iter().flat_map(|row| table.row(row))).collect()
    } else {
        rows.iter().flat_map(|row| wrapped(row, painter)).collect()
    }
}

struct Table {
    widths: [usize; 4],
    painter: Painter,
}

impl Table {
    fn columns(&self) -> usize {
        INDENT + self.widths.iter().sum::<usize>() + GAP * (self.widths.len() - 1)
    }

    fn first(&self, word: &str) -> String {
        format!("{word:width$}", width = self.widths[0])
    }

    /// The first cell may contain escape codes and has its full width already.
    fn line(&self, first: &str, [_, cells @ ..]: [&str; 4]) -> String {
        let mut line = format!("{:INDENT$}{first}", "");
        for (cell, width) in cells.iter().zip(&self.widths[1..]) {
            // Writing to a string does not fail.
            let _ = write!(line, "{:GAP$}{cell:width$}", "");
        }
        line
    }

    /// The reason can be long: it continues on the next line if it does not fit.
    fn row(&self, row: &Row<'_>) -> Vec<String> {
        let cells = row.cells.each_ref().map(String::as_str);
        let line = self.line(&row.paint(&self.first(cells[0]), self.painter), cells);
        let width = self.painter.style.width;
        if row.reason.is_empty() || self.columns() + GAP + row.reason.len() <= width {
            return vec![format!("{line}{:GAP$}{}", "", row.reason)];
        }
        let indent = INDENT + self.widths[0] + GAP;
        std::iter::once(line).chain(wrap(&row.reason, width, indent, indent)).collect()
    }
}

fn wrapped(row: &Row<'_>, painter: Painter) -> Vec<String> {
    let [word, local, utc, lasts] = &row.cells;
    let lasts = if row.lasts { format!("for {lasts}") } else { lasts.clone() };
    let facts: Vec<&str> =
        [local.as_str(), utc, &lasts, &row.reason].into_iter().filter(|fact| !fact.is_empty()).collect();
    let text = format!("{word:4} {}", facts.join(" "));
    let mut lines = wrap(&text, painter.style.width, INDENT, INDENT + "down ".len());
    if let Some(first) = lines.first_mut() {
        let (word, rest) = first.split_at(INDENT + "down".len());
        *first = format!("{}{rest}", row.paint(word, painter));
    }
    lines
}
