//! The timeline: everything that was observed, in order, printed when a test fails.
//!
//! One recorder watches the relevant kinds in both clusters and keeps every change of the fields that matter
//! for debugging (phase, conditions, finalizers, owners, taints), except heartbeats.

mod projection;
mod recorder;

use std::fmt::Write as _;

use jiff::Timestamp;

pub use recorder::Recorder;

use crate::cluster::Side;

/// An entry of the timeline.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The time at which it was seen.
    pub at: Timestamp,
    /// The source: a cluster or the test.
    pub side: Option<Side>,
    /// The object or the source.
    pub subject: String,
    /// The event.
    pub text: String,
    /// The namespace that it belongs to; for cluster-scoped objects, the start of their name.
    pub scope: String,
}

impl Entry {
    /// Returns true if the entry belongs to a test's namespace: by its namespace, or by a name that starts
    /// with it.
    pub fn belongs_to(&self, namespace: &str) -> bool {
        self.scope == namespace
            || self.scope.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// Entries as text, oldest first, with times counted from `start`.
pub fn render(mut entries: Vec<Entry>, start: Timestamp) -> String {
    entries.sort_by_key(|entry| entry.at);
    let mut text = String::new();
    for Entry { at, side, subject, text: what, .. } in entries {
        let seconds = at.duration_since(start).as_secs_f64();
        let side = side.map_or("test", Side::name);
        let _ = writeln!(text, "{seconds:>9.3}s  {side:<10}  {subject}: {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: &str, scope: &str, text: &str) -> Entry {
        let at = at.parse().expect("a time");
        Entry {
            at,
            side: Some(Side::Management),
            subject: "Machine/m".into(),
            text: text.into(),
            scope: scope.into(),
        }
    }

    #[test]
    fn entries_are_printed_in_order() {
        let start = "2026-11-15T08:00:00Z".parse().expect("a time");
        let entries =
            vec![entry("2026-11-15T08:00:02.5Z", "a", "second"), entry("2026-11-15T08:00:01Z", "a", "first")];
        let text = render(entries, start);
        assert_eq!(
            text,
            "    1.000s  management  Machine/m: first\n    2.500s  management  Machine/m: second\n"
        );
    }

    #[test]
    fn a_test_sees_its_own_only() {
        assert!(entry("2026-11-15T08:00:00Z", "t1", "").belongs_to("t1"));
        assert!(entry("2026-11-15T08:00:00Z", "t1-node", "").belongs_to("t1"), "a Node by its name");
        assert!(!entry("2026-11-15T08:00:00Z", "t10", "").belongs_to("t1"));
    }
}
