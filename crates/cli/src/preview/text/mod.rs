//! The preview for a terminal: a headline, a chart by local day, notes on clock changes, and the transitions.

mod cells;
mod chart;
mod headline;
mod paint;
mod transitions;

use crate::preview::forecast::Forecast;
use crate::style::Style;
use crate::wrap::wrap;
use paint::Painter;

/// All forecasts, one below the other.
pub fn render(forecasts: &[Forecast], style: Style) -> String {
    let sections: Vec<String> = forecasts.iter().map(|forecast| section(forecast, style)).collect();
    sections.join("\n\n")
}

fn section(forecast: &Forecast, style: Style) -> String {
    let painter = Painter::new(style);
    let mut lines = headline::lines(forecast, painter);
    lines.push(String::new());
    lines.extend(chart::lines(forecast, painter));
    lines.extend(clock_changes(forecast, painter));
    lines.extend(transitions::lines(forecast, painter));
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join(
        "
",
    ) + "
"
}

fn clock_changes(forecast: &Forecast, painter: Painter) -> Vec<String> {
    if forecast.clock_notes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), painter.bold("Clock changes")];
    for note in &forecast.clock_notes {
        lines.extend(wrap(&note.to_string(), painter.style.width, 2, 4));
        for effect in &note.effects {
            let effect = format!("{} {effect}", painter.bullet());
            lines.extend(wrap(&effect, painter.style.width, 4, 6));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
