//! The run as an SVG image: the rows of the timeline, below each row the periods in which the machine was
//! wanted, and marks for warnings. The image needs no other files and follows the viewer's light or dark
//! colour scheme.

mod theme;

use crate::element::Element;
use crate::range::Range;
use crate::sandbox::lines::moment;
use crate::sandbox::rows::{self, Row, Shade};
use crate::sandbox::summary::Run;
use crate::sandbox::trace::{Event, Fact, Key};
use crate::wording;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const WIDTH: u32 = 1060;
const MARGIN: u32 = 24;
/// The width of the names column; longer names are cut.
const NAMES: u32 = 190;
const CHART: u32 = WIDTH - NAMES - 2 * MARGIN;
const HEADER: u32 = 92;
const ROW: u32 = 38;
const BAR: u32 = 18;
/// The height of the line below the bar that shows when a machine was wanted.
const WANTED: u32 = 4;
/// The estimated width of a character: text cannot be measured before it is shown.
const CHARACTER: u32 = 7;

/// Renders the image.
pub fn render(run: &Run<'_>) -> String {
    let rows = run.rows();
    let mut elements = vec![title(run, rows.len()), subtitle(run)];
    let chart = Chart { range: run.shown(), rows: u32::try_from(rows.len()).unwrap_or_default() };
    elements.extend(chart.days());
    for (row, index) in rows.iter().zip(0..) {
        let y = HEADER + ROW * index;
        elements.push(name(&row.key, y));
        elements.extend(chart.bars(row, y));
        elements.extend(chart.wanted(run, &row.key, y));
        elements.extend(chart.marks(run, &row.key, y));
    }
    let below = HEADER + ROW * chart.rows + 14;
    elements.extend(legend(&rows, below));
    frame(elements, below + 34)
}

fn frame(elements: Vec<Element>, height: u32) -> String {
    let mut children = vec![
        Element::new("title").with("id", "title").text("A fleet over time"),
        Element::new("style").text(theme::STYLE),
        Element::new("rect").with("class", "ground").with("width", WIDTH).with("height", height),
    ];
    children.extend(elements);
    let svg = Element::new("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", WIDTH)
        .with("height", height)
        .with("role", "img")
        .with("aria-labelledby", "title")
        .children(children);
    format!("{svg}\n")
}

fn label(x: u32, y: u32, class: &str, text: &str) -> Element {
    Element::new("text").with("class", class).with("x", x).with("y", y).text(text)
}

fn title(run: &Run<'_>, machines: usize) -> Element {
    let long = wording::duration(run.shown().duration());
    label(MARGIN, MARGIN + 14, "title", &format!("{} over {long}", wording::count(machines, "machine")))
}

fn subtitle(run: &Run<'_>) -> Element {
    let verdict = match run.violations.len() {
        0 => "every machine was lent exactly when it was wanted".to_owned(),
        number => wording::count(number, "violation"),
    };
    let words = format!("{} to {}; {verdict}", moment(run.range.from), moment(run.end));
    label(MARGIN, MARGIN + 32, "muted", &words)
}

fn name(key: &Key, y: u32) -> Element {
    let room = usize::try_from(NAMES / CHARACTER).unwrap_or_default();
    let length = key.name.chars().count();
    let shown: String = if length > room {
        std::iter::once('…').chain(key.name.chars().skip(length + 1 - room)).collect()
    } else {
        key.name.clone()
    };
    label(MARGIN, y + 13, "name", &shown).titled(&key.to_string())
}

/// Converts instants to x positions.
struct Chart {
    range: Range,
    rows: u32,
}

impl Chart {
    fn x(&self, time: Timestamp) -> f64 {
        let part = time.duration_since(self.range.from).as_secs_f64() / self.range.duration().as_secs_f64();
        f64::from(MARGIN + NAMES) + (part.clamp(0.0, 1.0) * f64::from(CHART) * 10.0).round() / 10.0
    }

    /// A rectangle over a period, wide enough to be visible and to point at.
    fn interval(&self, from: Timestamp, to: Timestamp, y: u32, height: u32) -> Element {
        let (left, right) = (self.x(from), self.x(to));
        let width = ((right - left) * 10.0).round() / 10.0;
        Element::new("rect").with("x", left).with("y", y).with("width", width.max(1.0)).with("height", height)
    }

    /// A line and a label at the start of each day, in UTC. Long spans have labels only for as many days as
    /// fit.
    fn days(&self) -> Vec<Element> {
        let days = self.range.duration().as_hours() / 24 + 1;
        let step = days / 14 + 1;
        let bottom = HEADER + ROW * self.rows;
        let mut elements = Vec::new();
        let first = TimeZone::UTC.to_datetime(self.range.from).date();
        for day in (0..=days).step_by(usize::try_from(step).unwrap_or(1)) {
            let Ok(date) = first.checked_add(SignedDuration::from_hours(24 * day)) else { continue };
            let Ok(midnight) = date.to_zoned(TimeZone::UTC) else { continue };
            let midnight = midnight.timestamp();
            if midnight < self.range.from || midnight >= self.range.to {
                continue;
            }
            let x = self.x(midnight);
            let line = Element::new("line").with("class", "grid").with("x1", x).with("x2", x);
            elements.push(line.with("y1", HEADER - 16).with("y2", bottom));
            let words = date.strftime("%a %d %b").to_string();
            elements.push(
                Element::new("text")
                    .with("class", "day")
                    .with("x", x + 4.0)
                    .with("y", HEADER - 8)
                    .text(&words),
            );
        }
        elements
    }

    fn bars(&self, row: &Row, y: u32) -> Vec<Element> {
        let bar = |bar: &rows::Bar| {
            let long =
                wording::duration(SignedDuration::from_secs(bar.to.duration_since(bar.from).as_secs()));
            let words = format!("{}: {} to {} ({long})", bar.shade.words(), moment(bar.from), moment(bar.to));
            self.interval(bar.from, bar.to, y, BAR).with("class", theme::class(bar.shade)).titled(&words)
        };
        // Short bars are drawn last, so that the minute in which a machine joins is not hidden behind the
        // rest of the day.
        let mut bars: Vec<&rows::Bar> = row.bars.iter().collect();
        bars.sort_by_key(|bar| std::cmp::Reverse(bar.to.duration_since(bar.from)));
        bars.into_iter().map(bar).collect()
    }

    fn wanted(&self, run: &Run<'_>, key: &Key, y: u32) -> Vec<Element> {
        let wanted = rows::wanted(run.trace, key, run.end).into_iter();
        wanted
            .map(|(from, to)| {
                let words = format!("wanted: {} to {}", moment(from), moment(to));
                self.interval(from, to, y + BAR + 3, WANTED).with("class", "wanted").titled(&words)
            })
            .collect()
    }

    /// Warning events.
    fn marks(&self, run: &Run<'_>, key: &Key, y: u32) -> Vec<Element> {
        let entries = run.trace.entries.iter();
        let warnings = entries.filter_map(|entry| match &entry.fact {
            Fact::Event(event) if event.key == *key && event.is_warning => Some((entry.time, event)),
            Fact::Object(..) | Fact::Machine(..) | Fact::Event(_) | Fact::Write(_) | Fact::UserAction(_) => {
                None
            }
        });
        warnings
            .map(|(time, Event { reason, note, .. })| {
                let words = format!("{}: {reason}: {note}", moment(time));
                let mark = Element::new("circle").with("class", "mark").with("cx", self.x(time));
                mark.with("cy", y + BAR / 2).with("r", 5).titled(&words)
            })
            .collect()
    }
}

/// The legend, with only the colours that occur in the image.
fn legend(rows: &[Row], y: u32) -> Vec<Element> {
    let is_shown = |shade: &Shade| rows.iter().any(|row| row.bars.iter().any(|bar| bar.shade == *shade));
    let shades = Shade::ALL.into_iter().filter(is_shown);
    let entries =
        shades.map(|shade| (theme::class(shade), 12, shade.words())).chain([("wanted", WANTED, "wanted")]);
    let mut x = MARGIN;
    let mut elements = Vec::new();
    for (class, height, words) in entries {
        let swatch = Element::new("rect").with("class", class).with("x", x).with("y", y + (12 - height) / 2);
        elements.push(swatch.with("width", 12).with("height", height));
        elements.push(label(x + 18, y + 10, "muted", words));
        x += 18 + CHARACTER * u32::try_from(words.len()).unwrap_or_default() + 16;
    }
    elements
}
