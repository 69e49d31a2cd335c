//! The chart of one machine: a row for each local day, from midnight to midnight as the clock shows it.

use crate::element::Element;
use crate::preview::calendar::{self, Day, Pass, SECONDS_OF_DAY, Stretch, Up};
use crate::preview::forecast::{Forecast, Window, by_prominence};
use crate::preview::svg::Block;
use crate::preview::svg::theme;
use crate::wording;
use crate::wrap::wrap;
use five_spot_core::schedule::Causes;
use jiff::SignedDuration;
use jiff::civil::Weekday;

const LABEL_WIDTH: u32 = 92;
const HOUR_WIDTH: u32 = 32;
const BAR_END: u32 = LABEL_WIDTH + 24 * HOUR_WIDTH;
const ROW_HEIGHT: u32 = 22;
const BAR_HEIGHT: u32 = 16;
/// The distance from the top of a row to the baseline of its text.
const BASELINE: u32 = 12;
const LINE_HEIGHT: u32 = 18;
/// The gap between the first and the second occurrence of a repeated hour.
const LANE_GAP: u32 = 2;
/// The height of the stripe for further causes of a part, below the colour of the first.
const STRIPE_HEIGHT: u32 = 3;
/// The number of characters of a note that fit on a line in the widest common font.
const NOTE_CHARACTERS: usize = 135;

pub fn block(forecast: &Forecast) -> Block {
    let mut drawing = Drawing { elements: Vec::new(), y: 0 };
    drawing.headline(forecast);
    let days = calendar::days(&forecast.zone, &forecast.range, &forecast.windows);
    drawing.axis();
    drawing.tracks(&days);
    drawing.grid(days.len());
    let mut year = days.first().map(|day| day.date.year());
    for day in &days {
        let is_new_year = year.replace(day.date.year()) != Some(day.date.year());
        drawing.row(forecast, day, is_new_year);
    }
    drawing.clock_notes(forecast);
    Block { elements: drawing.elements, height: drawing.y }
}

/// Elements from top to bottom.
struct Drawing {
    elements: Vec<Element>,
    y: u32,
}

impl Drawing {
    fn line(&mut self, class: &str, text: &str) {
        self.y += LINE_HEIGHT;
        let line = Element::new("text").with("class", class).with("y", self.y - LINE_HEIGHT + BASELINE);
        self.elements.push(line.text(text));
    }

    fn headline(&mut self, forecast: &Forecast) {
        self.y += 4;
        self.line("title", &forecast.name);
        self.y += 2;
        let identity =
            format!("namespace {} · {} · {}", forecast.namespace, forecast.timezone, forecast.summary());
        self.line("muted", &identity);
        self.line("muted", &wording::range(&forecast.zone, &forecast.range));
        if let Some(note) = &forecast.note {
            self.line("note", note);
        }
    }

    fn axis(&mut self) {
        self.y += LINE_HEIGHT + 4;
        for (hour, x) in hour_marks() {
            let label = Element::new("text").with("class", "hour").with("x", x).with("y", self.y - 6);
            self.elements.push(label.text(&format!("{hour:02}:00")));
        }
    }

    /// The background: the time that exists, below the grid, which is below the windows.
    fn tracks(&mut self, days: &[Day]) {
        for (day, y) in days.iter().zip((self.y..).step_by(ROW_HEIGHT as usize)) {
            let tracks =
                day.covered.iter().map(|stretch| bar(*stretch, y, BAR_HEIGHT).with("class", "track"));
            self.elements.extend(tracks);
            let skipped = day.skipped.iter().map(|stretch| {
                let what = tooltip(&format!("{}: the clocks skip this", day.date));
                bar(*stretch, y, BAR_HEIGHT).with("fill", "url(#hatch)").children([what])
            });
            self.elements.extend(skipped);
        }
    }

    fn grid(&mut self, rows: usize) {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX / ROW_HEIGHT);
        let bottom = self.y + (ROW_HEIGHT * rows).saturating_sub(ROW_HEIGHT - BAR_HEIGHT);
        for (_, x) in hour_marks() {
            let line = Element::new("line").with("class", "grid").with("x1", x).with("x2", x);
            self.elements.push(line.with("y1", self.y).with("y2", bottom));
        }
    }

    fn row(&mut self, forecast: &Forecast, day: &Day, names_year: bool) {
        let y = self.y;
        self.y += ROW_HEIGHT;
        let text = |x: u32, class: &str| {
            Element::new("text").with("class", class).with("x", x).with("y", y + BASELINE)
        };
        let is_weekend = matches!(day.date.weekday(), Weekday::Saturday | Weekday::Sunday);
        let label = if names_year {
            format!("{} {}", wording::day(day.date), day.date.year())
        } else {
            wording::day(day.date)
        };
        self.elements.push(text(0, if is_weekend { "muted" } else { "" }).text(&label));
        for up in &day.up {
            if let Some(window) = forecast.windows.get(up.window) {
                self.elements.push(piece(forecast, window, *up, y));
            }
        }
        for stretch in &day.repeated {
            let repeated = bar(*stretch, y, BAR_HEIGHT).with("class", "twice");
            self.elements.push(repeated.children([tooltip(&format!(
                "{}: the clocks show this twice, first the upper half, then the lower",
                day.date
            ))]));
        }
        self.elements.push(text(BAR_END + 8, "muted").text(&remark(day)));
    }

    fn clock_notes(&mut self, forecast: &Forecast) {
        if !forecast.clock_notes.is_empty() {
            self.y += 6;
        }
        for note in &forecast.clock_notes {
            for line in wrap(&note.to_string(), NOTE_CHARACTERS, 0, 0) {
                self.line("note", &line);
            }
            for effect in &note.effects {
                for line in wrap(&format!("• {effect}"), NOTE_CHARACTERS, 0, 0) {
                    self.line("muted", &line);
                }
            }
        }
    }
}

/// A part of a window on one day, with the whole window in its tooltip.
fn piece(forecast: &Forecast, window: &Window, up: Up, y: u32) -> Element {
    let lane = (BAR_HEIGHT - LANE_GAP) / 2;
    let (y, height) = match up.pass {
        Pass::Only => (y, BAR_HEIGHT),
        Pass::First => (y, lane),
        Pass::Second => (y + lane + LANE_GAP, lane),
    };
    let mut causes = by_prominence(up.causes);
    let fill = causes.next().map_or("", theme::class);
    let mut children =
        vec![tooltip(&describe(forecast, window, up.causes)), bar(up.stretch, y, height).with("class", fill)];
    let mut stripe = y + height;
    for cause in causes {
        stripe -= STRIPE_HEIGHT;
        children.push(bar(up.stretch, stripe, STRIPE_HEIGHT).with("class", theme::class(cause)));
    }
    Element::new("g").children(children)
}

fn bar(stretch: Stretch, y: u32, height: u32) -> Element {
    let (from, to) = (column(stretch.from), column(stretch.to));
    // A window of a few minutes must still be visible and possible to point at.
    let width = (to - from).max(1.5);
    Element::new("rect")
        .with("x", format_args!("{from:.2}"))
        .with("y", y)
        .with("width", format_args!("{width:.2}"))
        .with("height", height)
}

/// The labels of every third hour and their positions.
fn hour_marks() -> impl Iterator<Item = (u32, u32)> {
    (0..=24).step_by(3).map(|hour| (hour, LABEL_WIDTH + hour * HOUR_WIDTH))
}

fn column(second: u32) -> f64 {
    f64::from(LABEL_WIDTH) + f64::from(second) / f64::from(SECONDS_OF_DAY) * f64::from(24 * HOUR_WIDTH)
}

fn tooltip(text: &str) -> Element {
    Element::new("title").text(text)
}

fn describe(forecast: &Forecast, window: &Window, here: Causes) -> String {
    let here = if here == window.causes { String::new() } else { format!(", here by {here}") };
    let (zone, start, end) = (&forecast.zone, window.start, window.end);
    format!(
        "{} to {}{}\n{} ({start} to {end})\n{}{here}",
        wording::moment_in(zone, start),
        wording::moment_in(zone, end),
        match (window.began_before, window.goes_on) {
            (false, false) => "",
            (true, false) => ", and before the range",
            (false, true) => ", and after the range",
            (true, true) => ", and before and after the range",
        },
        wording::duration(end.duration_since(start)),
        window.causes
    )
}

fn remark(day: &Day) -> String {
    const ORDINARY: SignedDuration = SignedDuration::from_hours(24);
    let up = day.up_for();
    let up = (!up.is_zero()).then(|| wording::duration(up));
    let length = match day.length() {
        ORDINARY => None,
        SignedDuration::ZERO => Some("no day".to_owned()),
        length => Some(format!("{} day", wording::duration(length))),
    };
    [up, length].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
