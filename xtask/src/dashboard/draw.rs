//! Draws the panels as an SVG image.

use super::series::{Panel, Series};
use std::fmt::Write as _;

/// The width of the image. Grafana divides it into 24 columns.
const WIDTH: i64 = 1200;
const COLUMN: i64 = WIDTH / 24;
/// The height of a row of Grafana.
const ROW: i64 = 24;
/// The space around the content of a panel.
const GAP: i64 = 8;
/// The largest number of names in a legend, and of rows in a table.
const NAMES: usize = 8;

/// Colours that are distinguishable on light and dark backgrounds.
const COLOURS: [&str; 8] =
    ["#1b8068", "#2f6fb3", "#b8650a", "#8e4ec6", "#c2255c", "#12a5c4", "#c92a2a", "#6b7685"];

const STYLE: &str = "text{font-family:system-ui,sans-serif;font-size:11px;fill:#1f2933}\
.ground{fill:#fff}.panel{fill:none;stroke:#d5dce5}.row{font-size:14px;font-weight:600}.title{font-size:12px;font-weight:600}\
.big{font-size:26px;font-weight:600}.muted{fill:#5b6775;font-size:10px}.line{fill:none;stroke-width:1.3}.grid{stroke:#e4e9ef}\
@media(prefers-color-scheme:dark){text{fill:#e6ebf1}.ground{fill:#12161b}.panel{stroke:#39434e}.grid{stroke:#232a32}.muted{fill:#9aa7b5}}";

/// The whole dashboard.
pub(super) fn picture(panels: &[(&Panel, Vec<Series>)], span: (i64, i64)) -> String {
    let height =
        panels.iter().map(|(panel, _)| (panel.place[1] + panel.place[3]) * ROW).max().unwrap_or_default()
            + GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>The 5-Spot dashboard after three days of the demo fleet</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    for (panel, series) in panels {
        let [x, y, width, height] = panel.place;
        let area = Area { x: x * COLUMN, y: y * ROW, width: width * COLUMN, height: height * ROW };
        match panel.kind.as_str() {
            "row" => text(&mut svg, area.x + GAP, area.y + 18, "row", &panel.title),
            "stat" => stat(&mut svg, &area, panel, series),
            "table" => table(&mut svg, &area, panel, series),
            _ => chart(&mut svg, &area, panel, series, span),
        }
    }
    svg.push_str("</svg>\n");
    svg
}

struct Area {
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

fn frame(svg: &mut String, area: &Area, title: &str) {
    let (x, y) = (area.x + GAP / 2, area.y + GAP / 2);
    let (width, height) = (area.width - GAP, area.height - GAP);
    let _ = writeln!(
        svg,
        "<rect class=\"panel\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\"/>"
    );
    text(svg, area.x + 2 * GAP, area.y + 22, "title", title);
}

fn stat(svg: &mut String, area: &Area, panel: &Panel, series: &[Series]) {
    frame(svg, area, &panel.title);
    let value = series.first().and_then(|one| one.points.last()).map(|(_, value)| *value);
    let shown = value.map_or_else(|| "no data".to_owned(), |value| formatted(value, &panel.unit));
    text(svg, area.x + 2 * GAP, area.y + 64, "big", &shown);
}

fn table(svg: &mut String, area: &Area, panel: &Panel, series: &[Series]) {
    frame(svg, area, &panel.title);
    if series.is_empty() {
        text(svg, area.x + 2 * GAP, area.y + 44, "muted", "no data");
    }
    for (row, one) in (0..).zip(series.iter().take(NAMES)) {
        let y = area.y + 44 + row * 16;
        let fits = usize::try_from(area.width / 8).unwrap_or_default();
        text(svg, area.x + 2 * GAP, y, "", &one.name.chars().take(fits).collect::<String>());
        let value = one.points.last().map(|(_, value)| formatted(*value, &panel.unit)).unwrap_or_default();
        let _ = writeln!(
            svg,
            "<text text-anchor=\"end\" x=\"{}\" y=\"{y}\">{value}</text>",
            area.x + area.width - 2 * GAP
        );
    }
}

fn chart(svg: &mut String, area: &Area, panel: &Panel, series: &[Series], (from, to): (i64, i64)) {
    frame(svg, area, &panel.title);
    // Lines that are always zero are left out.
    let mut shown: Vec<&Series> =
        series.iter().filter(|one| one.points.iter().any(|(_, value)| *value != 0.0)).collect();
    shown.truncate(NAMES);
    let (left, right) = (area.x + 52, area.x + area.width - 2 * GAP);
    let (top, bottom) = (area.y + 34, area.y + area.height - 36);
    let lines = stacked(&shown, panel.stacked);
    let highest = lines.iter().flatten().map(|(_, value)| *value).fold(0.0, f64::max);
    let highest = if highest > 0.0 { highest } else { 1.0 };
    for (part, y) in [(1.0, top), (0.5, i64::midpoint(top, bottom)), (0.0, bottom)] {
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {y}H{right}\"/>");
        let value = formatted(highest * part, &panel.unit);
        let _ = writeln!(
            svg,
            "<text class=\"muted\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{value}</text>",
            left - 4,
            y + 3
        );
    }
    let mut legend = area.x + 2 * GAP;
    for ((colour, one), line) in COLOURS.iter().zip(&shown).zip(&lines) {
        let mut path = String::new();
        for (time, value) in line {
            let x = left + (time - from) * (right - left) / (to - from).max(1);
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "pixels")]
            let y = bottom - (value / highest * (bottom - top) as f64).round() as i64;
            let _ = write!(path, "{}{x} {y}", if path.is_empty() { "M" } else { "L" });
        }
        let _ = writeln!(svg, "<path class=\"line\" stroke=\"{colour}\" d=\"{path}\"/>");
        let width = i64::try_from(one.name.chars().count()).unwrap_or_default() * 6 + 24;
        if legend + width < area.x + area.width {
            let y = area.y + area.height - 16;
            let _ = writeln!(
                svg,
                "<rect fill=\"{colour}\" x=\"{legend}\" y=\"{}\" width=\"8\" height=\"8\"/>",
                y - 8
            );
            text(svg, legend + 12, y, "muted", &one.name);
            legend += width;
        }
    }
    if series.is_empty() {
        text(svg, left + GAP, top + 20, "muted", "no data");
    }
}

/// Stacks the lines, if the panel is configured so.
fn stacked(series: &[&Series], stacked: bool) -> Vec<Vec<(i64, f64)>> {
    let mut below: Vec<(i64, f64)> = Vec::new();
    let mut lines = Vec::new();
    for one in series {
        let base = |time: i64| below.iter().find(|(at, _)| *at == time).map_or(0.0, |(_, value)| *value);
        let line: Vec<(i64, f64)> = one
            .points
            .iter()
            .map(|(time, value)| (*time, if stacked { value + base(*time) } else { *value }))
            .collect();
        below.clone_from(&line);
        lines.push(line);
    }
    lines
}

fn text(svg: &mut String, x: i64, y: i64, class: &str, content: &str) {
    let escaped = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{escaped}</text>");
}

/// A value with its unit, for people.
fn formatted(value: f64, unit: &str) -> String {
    match unit {
        "s" if value.abs() >= 172_800.0 => format!("{:.1} d", value / 86_400.0),
        "s" if value.abs() >= 7200.0 => format!("{:.1} h", value / 3600.0),
        "s" if value.abs() >= 120.0 => format!("{:.1} min", value / 60.0),
        "s" if value.abs() >= 1.0 || value == 0.0 => format!("{} s", rounded(value)),
        "s" => format!("{} ms", rounded(value * 1000.0)),
        "percentunit" => format!("{} %", rounded(value * 100.0)),
        _ => rounded(value),
    }
}

/// Rounds to three digits.
fn rounded(value: f64) -> String {
    let text = if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 1.0 || value == 0.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_unit_of_the_panel() {
        for (value, unit, expected) in [
            (0.0, "short", "0"),
            (3.0, "short", "3"),
            (0.0125, "short", "0.013"),
            (1234.5, "short", "1234"),
            (0.004, "s", "4 ms"),
            (45.0, "s", "45 s"),
            (5400.0, "s", "90.0 min"),
            (36_000.0, "s", "10.0 h"),
            (864_000.0, "s", "10.0 d"),
            (0.021, "percentunit", "2.1 %"),
        ] {
            assert_eq!(formatted(value, unit), expected, "{value} {unit}");
        }
    }

    #[test]
    fn stacked_lines_add_up() {
        let series =
            |name: &str, value: f64| Series { name: name.to_owned(), points: vec![(0, value), (60, value)] };
        let (one, other) = (series("a", 1.0), series("b", 2.0));
        assert_eq!(stacked(&[&one, &other], true)[1], [(0, 3.0), (60, 3.0)]);
        assert_eq!(stacked(&[&one, &other], false)[1], [(0, 2.0), (60, 2.0)]);
    }
}
