//! Log lines of the controller and the agents.

use jiff::Timestamp;
use serde_json::Value;

/// A line of a log: a JSON object in the documented shape, or any other text.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// The line itself.
    pub text: String,
    /// Its time.
    pub at: Option<Timestamp>,
    /// Its fields; null if it is not JSON.
    fields: Value,
}

impl LogLine {
    /// Reads a log.
    pub fn parse(log: &str) -> Vec<Self> {
        log.lines().filter(|line| !line.trim().is_empty()).map(Self::of).collect()
    }

    fn of(line: &str) -> Self {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let at = value["timestamp"].as_str().and_then(|time| time.parse().ok());
        Self { text: line.to_owned(), at, fields: value["fields"].clone() }
    }

    /// A field of the line.
    pub fn field(&self, name: &str) -> &str {
        self.fields[name].as_str().unwrap_or_default()
    }

    /// A field of the line that is a number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.fields[name].as_i64()
    }

    /// The message; the whole line if it is not JSON.
    pub fn message(&self) -> &str {
        self.fields["message"].as_str().unwrap_or(&self.text)
    }

    /// True if the line is about an object.
    pub fn is_about(&self, namespace: &str, name: &str) -> bool {
        self.field("namespace") == namespace && self.field("resource") == name
    }

    /// The line as evidence: its time, its message and its error.
    pub fn words(&self) -> String {
        let time = self.at.map(|at| format!("{at} ")).unwrap_or_default();
        match self.field("error") {
            "" => format!("log: {time}{}", self.message()),
            error => format!("log: {time}{}: {error}", self.message()),
        }
    }
}

/// The last line that contains a text, in its message or its error.
pub(super) fn last_with<'a>(log: &'a [LogLine], text: &str) -> Option<&'a LogLine> {
    log.iter().rev().find(|line| line.text.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_plain_lines_are_both_evidence() {
        let log = LogLine::parse(
            "{\"timestamp\":\"2026-11-16T08:00:00Z\",\"level\":\"ERROR\",\"fields\":{\"message\":\"failed\",\
             \"error\":\"no route\",\"namespace\":\"shop\",\"resource\":\"desk\"}}\n\nthread panicked\n",
        );
        assert_eq!(log.len(), 2);
        assert!(log[0].is_about("shop", "desk"));
        assert_eq!(log[0].words(), "log: 2026-11-16T08:00:00Z failed: no route");
        assert_eq!(log[1].words(), "log: thread panicked");
        assert_eq!(last_with(&log, "no route"), Some(&log[0]));
    }
}
