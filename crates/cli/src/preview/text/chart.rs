//! The chart: a row for each local day, from midnight to midnight as the clock shows it.

use crate::preview::calendar::{self, Day};
use crate::preview::forecast::Forecast;
use crate::preview::text::cells::{Cell, cells};
use crate::preview::text::paint::Painter;
use crate::wording;
use jiff::SignedDuration;
use std::fmt::Write as _;

pub fn lines(forecast: &Forecast, painter: Painter) -> Vec<String> {
    let days = calendar::days(&forecast.zone, &forecast.range, &forecast.windows);
    let layout = Layout::for_width(painter.style.width);
    let mut lines = vec![painter.dim(&layout.axis())];
    let mut year = days.first().map(|day| day.date.year());
    for day in &days {
        if year.replace(day.date.year()) != Some(day.date.year()) {
            lines.push(painter.dim(&day.date.year().to_string()));
        }
        lines.push(layout.row(day, painter));
    }
    lines
}

/// The columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    margins: Margins,
    /// The number of columns per hour.
    columns: usize,
}

/// The margins beside the 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Margins {
    /// `Sun 01 Nov` to the left, `10h 30m  25h day` to the right.
    Wide,
    /// `Sun 01` to the left, `10h30*` to the right.
    Narrow,
}

/// A finer resolution than 10 minutes per column does not help a reader.
const MOST_COLUMNS_OF_AN_HOUR: usize = 6;

impl Layout {
    /// Chooses wide margins if half an hour still has a column, otherwise the finest chart that fits.
    fn for_width(width: usize) -> Self {
        let finest = |margins: Margins| {
            let columns = width.saturating_sub(margins.columns()) / 24;
            Self { margins, columns: columns.min(MOST_COLUMNS_OF_AN_HOUR) }
        };
        let (wide, narrow) = (finest(Margins::Wide), finest(Margins::Narrow));
        if wide.columns >= narrow.columns.min(2) { wide } else { narrow }
    }

    /// The axis, with each label at the column at which its hour starts.
    fn axis(self) -> String {
        let step = if self.columns < 3 { 3 } else { 1 };
        let mut axis = " ".repeat(self.margins.left());
        for hour in (0..=24).step_by(step) {
            let at = self.margins.left() + hour * self.columns;
            while axis.len() < at {
                axis.push(' ');
            }
            // Writing to a string does not fail.
            let _ = write!(axis, "{hour}");
        }
        axis
    }

    fn row(self, day: &Day, painter: Painter) -> String {
        let mut row = self.margins.label(day);
        for run in cells(day, self.columns).chunk_by(|one, other| one.causes == other.causes) {
            row.push_str(&paint(run, painter));
        }
        row.push_str(&self.margins.remark(day));
        row
    }
}

/// Paints adjacent cells of one colour together, so that a row has few escape codes.
fn paint(run: &[Cell], painter: Painter) -> String {
    let text: String = run.iter().map(|cell| painter.glyph(cell.glyph)).collect();
    match run.first().and_then(|cell| cell.causes) {
        Some(causes) => painter.cause(causes, &text),
        None => painter.dim(&text),
    }
}

impl Margins {
    const fn left(self) -> usize {
        match self {
            Self::Wide => "Sun 01 Nov  ".len(),
            Self::Narrow => "Sun 01 ".len(),
        }
    }

    /// The width of both margins.
    const fn columns(self) -> usize {
        let right = match self {
            Self::Wide => " 23h 59m  24h30m day".len(),
            Self::Narrow => " 23h59*".len(),
        };
        self.left() + right
    }

    fn label(self, day: &Day) -> String {
        match self {
            Self::Wide => format!("{}  ", wording::day(day.date)),
            Self::Narrow => format!("{} ", day.date.strftime("%a %d")),
        }
    }

    /// The time for which a machine is up, to the minute, and the length of the day if it is not 24 hours.
    fn remark(self, day: &Day) -> String {
        const ORDINARY: SignedDuration = SignedDuration::from_hours(24);
        let up = SignedDuration::from_mins(day.up_for().as_mins());
        let up = if up.is_zero() { String::new() } else { wording::duration(up) };
        let is_ordinary = day.length() == ORDINARY;
        match self {
            Self::Wide if is_ordinary => format!(" {up}"),
            Self::Wide if day.length().is_zero() => "          no day".to_owned(),
            Self::Wide => format!(" {up:7}  {} day", wording::duration(day.length()).replace(' ', "")),
            Self::Narrow => {
                let up = up.replace(' ', "");
                let up = if up.contains('h') { up.trim_end_matches('m') } else { &up };
                format!(" {up}{}", if is_ordinary { "" } else { "*" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{MAX_WIDTH, MIN_WIDTH};

    #[test]
    fn the_chart_fits_every_width_and_grows_with_it() {
        let mut columns = 0;
        for width in MIN_WIDTH..=MAX_WIDTH {
            let layout = Layout::for_width(width);
            assert!(layout.margins.columns() + 24 * layout.columns <= width, "{width}: {layout:?}");
            assert!(layout.columns >= columns, "{width}: {layout:?}");
            columns = layout.columns;
        }
        assert_eq!(columns, MOST_COLUMNS_OF_AN_HOUR);
        let layout = |margins, columns| Layout { margins, columns };
        assert_eq!(Layout::for_width(40), layout(Margins::Narrow, 1));
        assert_eq!(Layout::for_width(61), layout(Margins::Wide, 1));
        assert_eq!(Layout::for_width(79), layout(Margins::Narrow, 2));
        assert_eq!(Layout::for_width(80), layout(Margins::Wide, 2));
    }

    #[test]
    fn hours_stand_where_they_start() {
        let layout = Layout { margins: Margins::Wide, columns: 1 };
        assert_eq!(layout.axis(), "            0  3  6  9  12 15 18 21 24");
    }
}
