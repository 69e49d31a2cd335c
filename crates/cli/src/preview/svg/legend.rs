//! The legend, with only the colours that occur in the image.

use crate::element::Element;
use crate::preview::calendar;
use crate::preview::forecast::{Forecast, by_prominence};
use crate::preview::svg::Block;
use crate::preview::svg::theme;
use five_spot_core::schedule::Causes;

const SWATCH: u32 = 12;
/// The estimated width of a character: text cannot be measured before it is shown.
const CHARACTER_WIDTH: u32 = 7;
const HEIGHT: u32 = 16;

pub fn block(forecasts: &[Forecast]) -> Option<Block> {
    let windows = forecasts.iter().flat_map(|forecast| &forecast.windows);
    let causes = windows.fold(Causes::NONE, |all, window| all.union(window.causes));
    let mut entries: Vec<(Element, &str)> = by_prominence(causes)
        .map(|cause| (swatch().with("class", theme::class(cause)), cause.as_str()))
        .collect();
    let days: Vec<_> =
        forecasts.iter().flat_map(|forecast| calendar::days(&forecast.zone, &forecast.range, &[])).collect();
    if days.iter().any(|day| !day.skipped.is_empty()) {
        entries.push((swatch().with("fill", "url(#hatch)"), "skipped by the clocks"));
    }
    if days.iter().any(|day| !day.repeated.is_empty()) {
        entries
            .push((swatch().with("class", "twice"), "shown twice by the clocks: first above, second below"));
    }
    if entries.is_empty() {
        return None;
    }
    let mut x = 0;
    let mut elements = Vec::new();
    for (swatch, words) in entries {
        let text =
            Element::new("text").with("class", "muted").with("x", x + SWATCH + 6).with("y", SWATCH - 1);
        elements.extend([swatch.with("x", x), text.text(words)]);
        x += SWATCH + 6 + CHARACTER_WIDTH * u32::try_from(words.len()).unwrap_or_default() + 18;
    }
    Some(Block { elements, height: HEIGHT })
}

fn swatch() -> Element {
    Element::new("rect").with("width", SWATCH).with("height", SWATCH)
}
