//! Findings, in the documented shape.

use super::id::FindingId;
use crate::object::ReportedObject;
use crate::shell;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong; it explains what someone may wonder about.
    Info,
    /// Something will go wrong, or works less well than it should.
    Warning,
    /// Something does not work.
    Error,
}

impl Severity {
    /// The name in JSON and text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A way to make a finding go away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// A command that can be pasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An explanation, or something to do for which there is no command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// True if nothing is lost by it.
    pub safe: bool,
    /// True if the command is for the workload cluster, and not for that of the `ScheduledMachine`.
    #[serde(skip)]
    pub in_workload_cluster: bool,
}

impl Fix {
    /// A command that loses nothing.
    pub fn command(command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), note: None, safe: true, in_workload_cluster: false }
    }

    /// Something to do for which there is no command.
    pub fn note(note: impl Into<String>) -> Self {
        Self { command: None, note: Some(note.into()), safe: true, in_workload_cluster: false }
    }

    /// The same with an explanation.
    #[must_use]
    pub fn because(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The same in the workload cluster, with an explanation that may be empty.
    #[must_use]
    pub fn in_workload_cluster(self, note: &str) -> Self {
        let colon = if note.is_empty() { "" } else { ": " };
        let note = Some(format!("in the workload cluster{colon}{note}"));
        Self { note, in_workload_cluster: true, ..self }
    }

    /// The same, marked as something by which something can be lost.
    #[must_use]
    pub fn risky(self) -> Self {
        Self { safe: false, ..self }
    }
}

/// Something that the doctor has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of finding.
    pub id: FindingId,
    /// Its weight.
    pub severity: Severity,
    /// The object that it is about.
    pub object: ReportedObject,
    /// One line that says what is wrong.
    pub title: String,
    /// The cause.
    pub cause: String,
    /// The words of the objects, logs and metrics themselves.
    pub evidence: Vec<String>,
    /// The ways to make it go away, the least harmful first.
    pub fix: Vec<Fix>,
    /// The page about it.
    pub docs: String,
}

/// The most evidence of a finding. More would not help.
const MAX_EVIDENCE: usize = 12;

/// The most bytes of a piece of evidence: tenants write some of it.
const MAX_EVIDENCE_BYTES: usize = 1024;

impl Finding {
    /// A finding without evidence and fixes.
    pub fn new(id: FindingId, severity: Severity, object: ReportedObject, title: impl Into<String>) -> Self {
        Self {
            id,
            severity,
            object,
            title: title.into(),
            cause: String::new(),
            evidence: Vec::new(),
            fix: Vec::new(),
            docs: id.docs(),
        }
    }

    /// The same with its cause.
    #[must_use]
    pub fn cause(self, cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), ..self }
    }

    /// The same with one more piece of evidence.
    #[must_use]
    pub fn evidence(mut self, words: impl AsRef<str>) -> Self {
        if self.evidence.len() < MAX_EVIDENCE && !words.as_ref().is_empty() {
            let words = five_spot_core::text::bounded(words.as_ref(), MAX_EVIDENCE_BYTES).into_owned();
            self.evidence.push(words);
        }
        self
    }

    /// The same with more evidence.
    #[must_use]
    pub fn evidence_of<T: AsRef<str>>(self, words: impl IntoIterator<Item = T>) -> Self {
        words.into_iter().fold(self, Self::evidence)
    }

    /// The same with one more fix.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix.push(fix);
        self
    }

    /// The order of a report: the gravest first, then by group and object.
    pub(super) fn by_weight(one: &Self, other: &Self) -> Ordering {
        let key = |finding: &Self| {
            (Reverse(finding.severity), finding.id.group(), finding.object.clone(), finding.id)
        };
        key(one).cmp(&key(other))
    }
}

/// The answer of `5spot doctor`. It serializes to the documented JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The number of `ScheduledMachines` that were checked.
    pub checked: usize,
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The same with commands that use further flags, such as `--context lab`. Those for workload clusters stay as they are.
    #[must_use]
    pub fn with_flags(mut self, flags: &str) -> Self {
        for fix in self.findings.iter_mut().flat_map(|finding| &mut finding.fix) {
            if !fix.in_workload_cluster {
                fix.command = fix.command.as_deref().map(|command| shell::with_flags(command, flags));
            }
        }
        self
    }

    /// The weight of the gravest finding.
    pub fn gravest(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
