//! Colours. Each has a contrast of at least 3 to 1 with the light and the dark background, and text 4.5 to 1,
//! as WCAG requires. Idle states have a lower contrast on purpose.

use crate::sandbox::rows::Shade;

/// The CSS class that gives a bar its colour.
pub const fn class(shade: Shade) -> &'static str {
    match shade {
        Shade::Ready => "active",
        Shade::Coming => "coming",
        Shade::ShuttingDown => "leaving",
        Shade::Held => "held",
        Shade::Inactive => "inactive",
        Shade::Disabled => "disabled",
        Shade::Terminated => "terminated",
        Shade::EmergencyRemove => "emergency",
        Shade::Error => "error",
    }
}

/// Light by default; dark if the viewer prefers it.
pub const STYLE: &str = "
text { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2933; }
.ground { fill: #ffffff; }
.title { font-size: 17px; font-weight: 600; }
.name { font-size: 12.5px; }
.muted { fill: #5b6775; }
.day { font-size: 11px; fill: #5b6775; }
.grid { stroke: #d5dce5; stroke-width: 1; }
.active { fill: #1b8068; }
.coming { fill: #12a5c4; }
.leaving { fill: #2f6fb3; }
.held { fill: #b8650a; }
.inactive { fill: #eaeef3; }
.disabled { fill: #c9d1db; }
.terminated { fill: #8e4ec6; }
.emergency { fill: #c2255c; }
.error { fill: #c92a2a; }
.wanted { fill: #7b8794; }
.mark { fill: #ffd43b; stroke: #1f2933; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e6ebf1; }
.ground { fill: #12161b; }
.muted, .day { fill: #9aa7b5; }
.grid { stroke: #2c343d; }
.active { fill: #3fb598; }
.coming { fill: #4fd0ea; }
.leaving { fill: #5b9be0; }
.held { fill: #e09a3e; }
.inactive { fill: #232a32; }
.disabled { fill: #39434e; }
.terminated { fill: #b98ae0; }
.emergency { fill: #f783ac; }
.error { fill: #ff6b6b; }
.wanted { fill: #8593a1; }
.mark { fill: #ffd43b; stroke: #12161b; }
}
";
