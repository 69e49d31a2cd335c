//! An explanation on one screen.

use crate::environment::ProcessEnvironment;
use crate::explain::Explained;
use crate::output::harmless;
use crate::style::Style;
use crate::wording;
use crate::wrap::wrap;
use anstyle::AnsiColor;
use five_spot_api::Phase;
use five_spot_diagnose::explain::{Blocker, Explanation, Next, Remedy};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::fmt::Write as _;

/// The reader's clock and time zones.
pub struct Reader {
    /// The zone of the machine; UTC if its schedule is invalid.
    machine: TimeZone,
    /// The zone of the reader, if it differs from the machine's.
    here: Option<TimeZone>,
    now: Timestamp,
}

impl Reader {
    pub fn new(explained: &Explained, process_environment: &ProcessEnvironment) -> Self {
        let machine = explained.zone.clone().unwrap_or(TimeZone::UTC);
        let here = process_environment
            .timezone
            .as_deref()
            .and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
        Self { here: here.filter(|here| *here != machine), machine, now: explained.now }
    }

    /// `Tue 17 Nov 18:00 EST (Wed 18 Nov 00:00 CET here), in 3h 58m`.
    fn moment(&self, at: Timestamp) -> String {
        let mut text = wording::moment_in(&self.machine, at);
        if let Some(here) = &self.here {
            let _ = write!(text, " ({} here)", wording::moment_in(here, at));
        }
        let wait = at.duration_since(self.now);
        let _ = write!(text, ", in {}", wording::duration(wait));
        text
    }
}

/// Renders an explanation.
pub fn render(explanation: &Explanation, reader: &Reader, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    let Explanation { name, namespace, phase, .. } = explanation;
    let shown = style.paint(color(*phase), phase.as_str());
    page.raw(&format!("{} is {shown}", harmless(&format!("{namespace}/{name}"))));
    let wanted = if explanation.wanted { "A machine is wanted" } else { "No machine is wanted" };
    page.item(&format!("{wanted}: {}", explanation.because), 2);
    for (what, object) in [("Machine", &explanation.machine), ("Node", &explanation.node)] {
        if let Some(object) = object {
            page.item(&format!("{what} {object}"), 2);
        }
    }
    page.heading("Next");
    if explanation.next.is_empty() {
        // Attempts that failed are repeated, and only the controller knows when.
        let is_retried = explanation.phase == Phase::Error || !explanation.would_do.is_empty();
        let words = if is_retried {
            "the controller retries, at least every five minutes"
        } else {
            "nothing happens by itself"
        };
        page.item(words, 2);
    }
    for Next { at, what } in &explanation.next {
        page.item(&reader.moment(*at), 2);
        page.item(what, 6);
    }
    if !explanation.blockers.is_empty() {
        page.heading("Blockers");
    }
    for Blocker { what, evidence, fix } in &explanation.blockers {
        page.item(what, 2);
        for line in evidence {
            page.item(line, 6);
        }
        for remedy in fix {
            match remedy {
                Remedy::Advice(words) => page.item(&format!("* {words}"), 6),
                Remedy::Command(command) | Remedy::WorkloadCommand(command) => page.command(command, 6),
            }
        }
    }
    if !explanation.would_do.is_empty() {
        page.heading("The controller would now");
    }
    for action in &explanation.would_do {
        page.item(action, 2);
    }
    page.text
}

/// The colour of a phase.
fn color(phase: Phase) -> anstyle::Style {
    let color = match phase {
        Phase::Active => AnsiColor::Green,
        Phase::Pending | Phase::ShuttingDown => AnsiColor::Yellow,
        Phase::Error | Phase::EmergencyRemove => AnsiColor::Red,
        Phase::Inactive | Phase::Disabled | Phase::Terminated => AnsiColor::Cyan,
    };
    color.on_default().bold()
}

/// A text under construction.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn raw(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, words: &str) {
        let heading = self.style.paint(anstyle::Style::new().bold(), words);
        self.raw(&format!("\n{heading}"));
    }

    /// Text that wraps under itself.
    fn item(&mut self, words: &str, indent: usize) {
        for line in wrap(&harmless(words), self.style.width, indent, indent + 2) {
            self.raw(&line);
        }
    }

    /// A line that can be pasted, so it is never broken.
    fn command(&mut self, words: &str, indent: usize) {
        let words = harmless(words);
        let marked = self.style.paint(AnsiColor::Cyan.on_default(), &words);
        self.raw(&format!("{}> {marked}", " ".repeat(indent)));
    }
}
