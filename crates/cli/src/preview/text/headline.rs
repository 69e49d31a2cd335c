//! The headline of a chart: the object and the range.

use crate::preview::forecast::Forecast;
use crate::preview::text::paint::Painter;
use crate::wording;
use crate::wrap::wrap;

pub fn lines(forecast: &Forecast, painter: Painter) -> Vec<String> {
    let Painter { style } = painter;
    let separator = painter.separator();
    let identity = format!("{}/{}{separator}{}", forecast.namespace, forecast.name, forecast.timezone);
    let mut lines: Vec<String> =
        wrap(&identity, style.width, 0, 2).iter().map(|line| painter.bold(line)).collect();
    let (range, summary) = (wording::range(&forecast.zone, &forecast.range), forecast.summary());
    let both = format!("{range}{separator}{summary}");
    if both.chars().count() <= style.width {
        lines.push(both);
    } else {
        lines.extend(wrap(&range, style.width, 0, 2));
        lines.push(summary);
    }
    if let Some(note) = &forecast.note {
        lines.extend(wrap(note, style.width, 0, 2).iter().map(|line| painter.warn(line)));
    }
    lines
}
