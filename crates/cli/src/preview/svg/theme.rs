//! Colours. Each has a contrast of at least 3 to 1 with the light and the dark background, and text 4.5 to 1,
//! as WCAG requires.

use five_spot_core::schedule::Cause;

/// The CSS class that gives a window its colour.
pub const fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Exception => "exception",
        Cause::LeadTime => "lead-time",
        Cause::Override => "override",
        Cause::Schedule => "schedule",
        Cause::Window => "window",
    }
}

/// Light by default; dark if the viewer prefers it.
pub const STYLE: &str = "
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2933; }
.ground { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.muted { fill: #5b6775; }
.hour { font-size: 11px; fill: #5b6775; text-anchor: middle; }
.note { fill: #8a4b08; }
.track { fill: #eaeef3; }
.grid { stroke: #c9d1db; stroke-width: 1; }
.hatch { stroke: #9aa5b1; stroke-width: 1.5; }
.twice { fill: none; stroke: #5b6775; stroke-width: 1; stroke-dasharray: 3 2; }
.schedule { fill: #2f6fb3; }
.window { fill: #1b8068; }
.exception { fill: #b8650a; }
.override { fill: #8e4ec6; }
.lead-time { fill: #12a5c4; }
@media (prefers-color-scheme: dark) {
text { fill: #e6ebf1; }
.ground { fill: #12161b; }
.muted, .hour { fill: #9aa7b5; }
.note { fill: #f0b35a; }
.track { fill: #232a32; }
.grid { stroke: #39434e; }
.hatch { stroke: #66727f; }
.twice { stroke: #9aa7b5; }
.schedule { fill: #5b9be0; }
.window { fill: #3fb598; }
.exception { fill: #e09a3e; }
.override { fill: #b98ae0; }
.lead-time { fill: #4fd0ea; }
}
";
