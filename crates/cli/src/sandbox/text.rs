//! The timeline for a terminal: a row for each machine, the span as columns.

use crate::range::Range;
use crate::sandbox::rows::{Row, Shade};
use crate::style::{Charset, Style};
use anstyle::{AnsiColor, Effects};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The part of a line that names may use, at most.
const WIDEST_NAME: usize = 3;

/// The rows, with the axis above and the legend below.
pub fn chart(rows: &[Row], range: Range, style: Style) -> Vec<String> {
    let layout = Layout::of(rows, range, style);
    let mut lines = vec![dim(style, &layout.axis())];
    lines.extend(rows.iter().map(|row| layout.row(row)));
    lines.push(String::new());
    lines.extend(legend(rows, style));
    lines
}

/// The columns of a line.
struct Layout {
    names: usize,
    cells: usize,
    range: Range,
    style: Style,
}

impl Layout {
    fn of(rows: &[Row], range: Range, style: Style) -> Self {
        let longest = rows.iter().map(|row| row.key.to_string().chars().count()).max().unwrap_or_default();
        let names = longest.min(style.width / WIDEST_NAME) + 2;
        Self { names, cells: style.width - names, range, style }
    }

    /// The first instant of a cell.
    fn start(&self, cell: usize) -> Timestamp {
        let part = |cells: usize| i64::try_from(cells).unwrap_or(i64::MAX);
        let seconds = self.range.duration().as_secs() * part(cell) / part(self.cells);
        self.range.from + SignedDuration::from_secs(seconds)
    }

    /// The labels of the days, each at its start, as far as they fit.
    fn axis(&self) -> String {
        let mut axis = " ".repeat(self.names);
        let mut cells = vec![' '; self.cells];
        let mut free = 0;
        for cell in 0..self.cells {
            let date = |instant: Timestamp| TimeZone::UTC.to_datetime(instant).date();
            let is_new = cell == 0 || date(self.start(cell)) != date(self.start(cell - 1));
            let label = date(self.start(cell)).strftime("%a %d").to_string();
            // A day that started before the range gets a label only if there is room before the next one.
            let next = (cell + 1..self.cells).find(|next| date(self.start(*next)) != date(self.start(cell)));
            let room = next.unwrap_or(self.cells) - cell;
            if is_new && cell >= free && room > label.len() {
                for (offset, character) in label.chars().enumerate() {
                    cells[cell + offset] = character;
                }
                free = cell + label.len() + 1;
            }
        }
        axis.extend(cells);
        axis.trim_end().to_owned()
    }

    fn row(&self, row: &Row) -> String {
        let mut line = fit(&row.key.to_string(), self.names - 2, self.style.charset);
        line.push_str("  ");
        let cells: Vec<Option<Shade>> = (0..self.cells).map(|cell| self.shade(row, cell)).collect();
        for run in cells.chunk_by(|one, other| one == other) {
            let glyph = run[0].map_or(' ', |shade| glyph(shade, self.style.charset));
            let text: String = run.iter().map(|_| glyph).collect();
            line.push_str(&match run[0] {
                Some(shade) => self.style.paint(color(shade), &text),
                None => text,
            });
        }
        line.trim_end().to_owned()
    }

    /// The state to show in a cell: the one that fills most of it. Errors are shown even if they were short,
    /// and transitions if they fill a visible part of the cell.
    fn shade(&self, row: &Row, cell: usize) -> Option<Shade> {
        let (from, to) = (self.start(cell), self.start(cell + 1));
        let mut shares: Vec<(SignedDuration, Shade)> = Vec::new();
        for bar in &row.bars {
            let (from, to) = (bar.from.max(from), bar.to.min(to));
            if from < to {
                let share = to.duration_since(from) * weight(bar.shade);
                match shares.iter_mut().find(|(_, shade)| *shade == bar.shade) {
                    Some((known, _)) => *known += share,
                    None => shares.push((share, bar.shade)),
                }
            }
        }
        shares.into_iter().max().map(|(_, shade)| shade)
    }
}

/// The weight of a state in a cell that it shares with others.
const fn weight(shade: Shade) -> i32 {
    match shade {
        Shade::EmergencyRemove | Shade::Error => 10_000,
        Shade::Held => 20,
        Shade::Coming | Shade::ShuttingDown => 4,
        Shade::Ready | Shade::Inactive | Shade::Disabled | Shade::Terminated => 1,
    }
}

/// A name, cut or padded to a number of columns.
fn fit(name: &str, columns: usize, charset: Charset) -> String {
    let length = name.chars().count();
    if length <= columns {
        return format!("{name:columns$}");
    }
    let cut = match charset {
        Charset::Unicode => '…',
        Charset::Ascii => '~',
    };
    // Names are cut at the start, because similar names differ at the end.
    std::iter::once(cut).chain(name.chars().skip(length + 1 - columns)).collect()
}

/// The legend, with only the states that occur in the chart.
fn legend(rows: &[Row], style: Style) -> Vec<String> {
    let is_shown = |shade: &Shade| rows.iter().any(|row| row.bars.iter().any(|bar| bar.shade == *shade));
    let mut lines: Vec<String> = Vec::new();
    let mut used = style.width;
    for shade in Shade::ALL.into_iter().filter(is_shown) {
        let length = shade.words().len() + 2;
        let swatch = style.paint(color(shade), &glyph(shade, style.charset).to_string());
        let entry = format!("{swatch} {}", shade.words());
        match lines.last_mut() {
            Some(line) if used + 3 + length <= style.width => {
                line.push_str("   ");
                line.push_str(&entry);
                used += 3 + length;
            }
            Some(_) | None => {
                lines.push(entry);
                used = length;
            }
        }
    }
    lines
}

const fn glyph(shade: Shade, charset: Charset) -> char {
    match charset {
        Charset::Unicode => match shade {
            Shade::Ready => '█',
            Shade::Coming => '▒',
            Shade::ShuttingDown => '░',
            Shade::Held => '▚',
            Shade::Inactive => '·',
            Shade::Disabled => '-',
            Shade::Terminated => '×',
            Shade::EmergencyRemove => '!',
            Shade::Error => 'E',
        },
        Charset::Ascii => match shade {
            Shade::Ready => '#',
            Shade::Coming => '+',
            Shade::ShuttingDown => '=',
            Shade::Held => '%',
            Shade::Inactive => '.',
            Shade::Disabled => '-',
            Shade::Terminated => 'x',
            Shade::EmergencyRemove => '!',
            Shade::Error => 'E',
        },
    }
}

/// Colours that every terminal has and that are readable on light and dark backgrounds.
pub fn color(shade: Shade) -> anstyle::Style {
    let plain = anstyle::Style::new();
    let colored = |color: AnsiColor| plain.fg_color(Some(color.into()));
    match shade {
        Shade::Ready => colored(AnsiColor::Green),
        Shade::Coming => colored(AnsiColor::Cyan),
        Shade::ShuttingDown => colored(AnsiColor::Blue),
        Shade::Held => colored(AnsiColor::Yellow),
        Shade::Inactive | Shade::Disabled => plain.effects(Effects::DIMMED),
        Shade::Terminated => colored(AnsiColor::Magenta),
        Shade::EmergencyRemove | Shade::Error => colored(AnsiColor::Red),
    }
}

/// Dimmed text.
pub fn dim(style: Style, text: &str) -> String {
    style.paint(anstyle::Style::new().effects(Effects::DIMMED), text)
}
