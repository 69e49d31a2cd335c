//! The preview as an SVG image: the same chart as the text, with the times of each window in a tooltip. The
//! image needs no other files and follows the viewer's light or dark colour scheme.

mod chart;
mod legend;
mod theme;

use crate::element::Element;
use crate::preview::forecast::Forecast;
use crate::wording;

const WIDTH: u32 = 1060;
const MARGIN: u32 = 24;

/// A part of the image: its elements, relative to its top left corner, and its height.
struct Block {
    elements: Vec<Element>,
    height: u32,
}

/// All forecasts, one below the other.
pub fn render(forecasts: &[Forecast]) -> String {
    let mut blocks: Vec<Block> = forecasts.iter().map(chart::block).collect();
    if blocks.is_empty() {
        let nothing = Element::new("text").with("y", 14).text("No ScheduledMachine");
        blocks.push(Block { elements: vec![nothing], height: 20 });
    }
    blocks.extend(legend::block(forecasts));

    let mut y = MARGIN;
    let mut groups = Vec::new();
    for Block { elements, height } in blocks {
        groups
            .push(Element::new("g").with("transform", format!("translate({MARGIN} {y})")).children(elements));
        y += height + MARGIN;
    }
    format!("{}\n", frame(forecasts, y, groups))
}

fn frame(forecasts: &[Forecast], height: u32, groups: Vec<Element>) -> Element {
    let names: Vec<&str> = forecasts.iter().map(|forecast| forecast.name.as_str()).collect();
    let title = format!("When {} will be up", wording::count(forecasts.len(), "machine"));
    let hatch = Element::new("pattern")
        .with("id", "hatch")
        .with("width", 6)
        .with("height", 6)
        .with("patternUnits", "userSpaceOnUse")
        .with("patternTransform", "rotate(45)")
        .children([Element::new("line").with("class", "hatch").with("y2", 6)]);
    let mut children = vec![
        Element::new("title").with("id", "title").text(&title),
        Element::new("desc").with("id", "desc").text(&names.join(", ")),
        Element::new("style").text(theme::STYLE),
        Element::new("defs").children([hatch]),
        Element::new("rect").with("class", "ground").with("width", WIDTH).with("height", height),
    ];
    children.extend(groups);
    Element::new("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", WIDTH)
        .with("height", height)
        .with("role", "img")
        .with("aria-labelledby", "title desc")
        .children(children)
}
