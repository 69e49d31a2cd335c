//! The summary of a run: one line per machine, counts, and the result.

use crate::range::Range;
use crate::sandbox::lines::moment;
use crate::sandbox::reclaims::{Reclaim, reclaims};
use crate::sandbox::rows::{self, Row, Shade};
use crate::sandbox::text::{color, dim};
use crate::sandbox::trace::{Fact, Trace};
use crate::sandbox::verdict::Violation;
use crate::style::Style;
use crate::wording;
use crate::wrap::wrap;
use anstyle::Effects;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A run that has ended.
pub struct Run<'a> {
    pub trace: &'a Trace,
    pub range: Range,
    /// The end of the run. A user who watches can end it before or after the end of the range.
    pub end: Timestamp,
    pub violations: &'a [Violation],
}

impl Run<'_> {
    pub fn rows(&self) -> Vec<Row> {
        rows::rows(self.trace, self.shown(), self.end)
    }

    /// The period that the chart shows: the requested range, extended if the run continued after it.
    pub fn shown(&self) -> Range {
        Range { from: self.range.from, to: self.range.to.max(self.end) }
    }

    fn count(&self, is_it: impl Fn(&Fact) -> bool) -> usize {
        self.trace.entries.iter().filter(|entry| is_it(&entry.fact)).count()
    }
}

/// The summary as text.
pub fn text(run: &Run<'_>, style: Style) -> Vec<String> {
    let rows = run.rows();
    let mut lines = vec![String::new()];
    lines.extend(rows.iter().flat_map(|row| wrap(&machine_line(run, row), style.width, 0, 4)));
    let reclaims = reclaims(run.trace);
    lines.extend(reclaims.iter().flat_map(|reclaim| wrap(&reclaim.text(), style.width, 0, 4)));
    lines.push(String::new());
    let transitions = run.trace.with_transitions().filter(|(_, transition)| transition.is_some()).count();
    let figures = format!(
        "{} to {}: {}, {}, {}, {} by the controller",
        moment(run.range.from),
        moment(run.end),
        wording::count(rows.len(), "machine"),
        wording::count(transitions, "transition"),
        wording::count(run.count(|fact| matches!(fact, Fact::Event(_))), "event"),
        wording::count(run.count(|fact| matches!(fact, Fact::Write(_))), "write"),
    );
    lines.extend(wrap(&figures, style.width, 0, 0).iter().map(|line| dim(style, line)));
    if run.violations.is_empty() {
        let well = "Every machine was lent exactly when it was wanted.";
        lines.push(style.paint(color(Shade::Ready).effects(Effects::BOLD), well));
    } else {
        let ill = format!("{}:", wording::count(run.violations.len(), "violation"));
        lines.push(style.paint(color(Shade::Error).effects(Effects::BOLD), &ill));
        let violations = run.violations.iter().map(|violation| format!("- {violation}"));
        lines.extend(violations.flat_map(|line| wrap(&line, style.width, 2, 4)));
    }
    lines
}

fn machine_line(run: &Run<'_>, row: &Row) -> String {
    let wanted = rows::wanted(run.trace, &row.key, run.end);
    let total = wanted.iter().map(|(from, to)| to.duration_since(*from)).sum();
    let now = row.last(run.end).map_or("gone", Shade::words);
    match wanted.len() {
        0 => format!("{}: not wanted; now {now}", row.key),
        windows => format!(
            "{}: wanted {} in {}, lent {}; now {now}",
            row.key,
            wording::duration(whole_minutes(total)),
            wording::count(windows, "window"),
            wording::duration(whole_minutes(row.ready_for())),
        ),
    }
}

fn whole_minutes(duration: SignedDuration) -> SignedDuration {
    SignedDuration::from_mins(duration.as_mins())
}

/// The summary as JSON: the last line of the output.
pub fn json(run: &Run<'_>) -> String {
    let machines: Vec<Value> = run.rows().iter().map(|row| machine_value(run, row)).collect();
    let violations: Vec<Value> = run
        .violations
        .iter()
        .map(|violation| {
            json!({
                "time": violation.time.to_string(), "namespace": violation.key.namespace,
                "name": violation.key.name, "message": violation.what,
            })
        })
        .collect();
    let reclaims: Vec<Value> = reclaims(run.trace).iter().map(Reclaim::json).collect();
    json!({"type": "summary", "machines": machines, "reclaims": reclaims, "violations": violations})
        .to_string()
}

fn machine_value(run: &Run<'_>, row: &Row) -> Value {
    let windows: Vec<Value> = rows::wanted(run.trace, &row.key, run.end)
        .into_iter()
        .map(|(start, end)| json!({"start": start.to_string(), "end": end.to_string()}))
        .collect();
    let phase = run.trace.snapshots(&row.key).last().and_then(|(_, last)| last.and_then(|last| last.phase));
    json!({
        "namespace": row.key.namespace, "name": row.key.name, "phase": phase, "windows": windows,
        "lentSeconds": row.ready_for().as_secs(),
    })
}
