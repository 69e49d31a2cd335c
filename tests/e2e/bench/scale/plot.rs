//! A plot of the growth, as an SVG image: memory, CPU and requests by the number of objects, both axes logarithmic.

use std::fmt::Write as _;

use super::in_memory::Growth;

/// The width and height of one panel without its labels.
const PANEL: (f64, f64) = (200.0, 160.0);
/// The space around a panel.
const MARGIN: (f64, f64) = (60.0, 40.0);

/// One curve.
struct Panel {
    title: &'static str,
    /// Objects and value.
    points: Vec<(f64, f64)>,
}

/// Draws the figures.
pub(super) fn svg(figures: &[Growth]) -> String {
    #[allow(clippy::cast_precision_loss)]
    let curve = |value: &dyn Fn(&Growth) -> f64| {
        figures.iter().map(|figure| (figure.objects as f64, value(figure).max(0.01))).collect()
    };
    #[allow(clippy::cast_precision_loss)]
    let panels = [
        Panel { title: "memory at rest, MB", points: curve(&|figure| figure.memory as f64 / 1e6) },
        Panel { title: "CPU of a restart, s", points: curve(&|figure| figure.restart_cpu_seconds) },
        Panel {
            title: "requests of the first contact",
            points: curve(&|figure| figure.contact_requests as f64),
        },
    ];
    let mut text = String::new();
    let (width, height) = (3.0 * (PANEL.0 + MARGIN.0) + 20.0, PANEL.1 + 2.0 * MARGIN.1);
    let _ = writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#ffffff"/>"##
    );
    let mut left = MARGIN.0;
    for panel in panels {
        draw(&mut text, &panel, left);
        left += PANEL.0 + MARGIN.0;
    }
    text.push_str("</svg>\n");
    text
}

fn draw(text: &mut String, panel: &Panel, left: f64) {
    let top = MARGIN.1;
    let horizontal = Axis::over(panel.points.iter().map(|point| point.0));
    let vertical = Axis::over(panel.points.iter().map(|point| point.1));
    let x = |value: f64| left + horizontal.share(value) * PANEL.0;
    let y = |value: f64| top + (1.0 - vertical.share(value)) * PANEL.1;
    let _ =
        writeln!(text, r#"<text x="{left}" y="{}" font-weight="bold">{}</text>"#, top - 14.0, panel.title);
    for value in horizontal.decades() {
        let (x, bottom) = (x(value), top + PANEL.1);
        let _ = writeln!(
            text,
            r##"<line x1="{x:.1}" y1="{top}" x2="{x:.1}" y2="{bottom}" stroke="#dddddd"/><text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"##,
            bottom + 16.0,
            label(value)
        );
    }
    for value in vertical.decades() {
        let (y, right) = (y(value), left + PANEL.0);
        let _ = writeln!(
            text,
            r##"<line x1="{left}" y1="{y:.1}" x2="{right}" y2="{y:.1}" stroke="#dddddd"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"##,
            left - 6.0,
            y + 4.0,
            label(value)
        );
    }
    let places: Vec<String> =
        panel.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
    let _ = writeln!(
        text,
        r##"<polyline points="{}" fill="none" stroke="#1f5fa8" stroke-width="2"/>"##,
        places.join(" ")
    );
    for point in &panel.points {
        let (x, y) = (x(point.0), y(point.1));
        let _ = writeln!(
            text,
            r##"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="#1f5fa8"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"##,
            y - 7.0,
            label(point.1)
        );
    }
}

/// A logarithmic axis over whole decades.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let lowest = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        #[allow(clippy::cast_possible_truncation)]
        let (first, last) = (lowest.log10().floor() as i32, most.log10().ceil() as i32);
        Self { first, last: last.max(first + 1) }
    }

    fn share(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|exponent| 10_f64.powi(exponent))
    }
}

/// A number as people write it: 12,300 or 0.15.
fn label(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let whole = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
