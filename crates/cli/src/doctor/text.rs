//! A report for people, in the manner of `linkerd check`: grouped, quiet where all is well.

use crate::output::harmless;
use crate::style::{Charset, Style};
use crate::wording;
use crate::wrap::wrap;
use anstyle::AnsiColor;
use five_spot_diagnose::doctor::{Finding, FindingId, Fix, Group, Report, Severity};
use std::collections::BTreeMap;

/// More notes of one kind than this are only counted.
const NOTES: usize = 3;

/// One line for each finding.
pub fn short(report: &Report) -> String {
    let lines = report.findings.iter().map(|finding| {
        let Finding { id, severity, object, title, .. } = finding;
        harmless(&format!("{} {id} {object}: {title}", severity.as_str())) + "\n"
    });
    lines.collect()
}

/// Everything. `is_named` shows every note in full, because one machine was asked about.
pub fn render(report: &Report, not_read: &[String], is_named: bool, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    for group in Group::ALL {
        let findings: Vec<&Finding> =
            report.findings.iter().filter(|finding| finding.id.group() == group).collect();
        page.group(group, &findings, is_named);
    }
    if !not_read.is_empty() {
        page.line("");
        page.line("Not checked:");
    }
    for note in not_read {
        page.wrapped(note, 2);
    }
    page.line("");
    page.line(&conclusion(report, not_read.len()));
    page.text
}

/// `Checked 7 machines: 1 error, 2 warnings, 3 notes. 2 checks were not possible.`
fn conclusion(report: &Report, not_read: usize) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let machines = wording::count(report.checked, "machine");
    let parts: Vec<String> =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "note")]
            .into_iter()
            .filter(|(severity, _)| count(*severity) > 0)
            .map(|(severity, noun)| wording::count(count(severity), noun))
            .collect();
    let found = if parts.is_empty() { "nothing to report".to_owned() } else { parts.join(", ") };
    let unchecked = match not_read {
        0 => String::new(),
        1 => " 1 check was not possible.".to_owned(),
        number => format!(" {number} checks were not possible."),
    };
    format!("Checked {machines}: {found}.{unchecked}")
}

/// A text under construction.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn wrapped(&mut self, words: &str, indent: usize) {
        for line in wrap(&harmless(words), self.style.width, indent, indent + 2) {
            self.line(&line);
        }
    }

    fn mark(&self, severity: Option<Severity>) -> String {
        let (unicode, ascii, color) = match severity {
            None => ("√", "ok", AnsiColor::Green),
            Some(Severity::Info) => ("i", "i", AnsiColor::Cyan),
            Some(Severity::Warning) => ("‼", "!!", AnsiColor::Yellow),
            Some(Severity::Error) => ("×", "x", AnsiColor::Red),
        };
        let mark = match self.style.charset {
            Charset::Unicode => unicode,
            Charset::Ascii => ascii,
        };
        self.style.paint(color.on_default().bold(), mark)
    }

    fn group(&mut self, group: Group, findings: &[&Finding], is_named: bool) {
        let gravest = findings.iter().map(|finding| finding.severity).max();
        let mark = self.mark(gravest.filter(|severity| *severity > Severity::Info));
        let heading = self.style.paint(anstyle::Style::new().bold(), group.as_str());
        self.line(&format!("{mark} {heading}"));
        let mut counted: BTreeMap<FindingId, Vec<&Finding>> = BTreeMap::new();
        for finding in findings {
            let is_note = finding.severity == Severity::Info && !is_named;
            if is_note {
                counted.entry(finding.id).or_default().push(finding);
            } else {
                self.finding(finding);
            }
        }
        for (id, notes) in counted {
            self.notes(id, &notes);
        }
    }

    /// Notes of one kind: few by name, many by number.
    fn notes(&mut self, id: FindingId, notes: &[&Finding]) {
        let mark = self.mark(Some(Severity::Info));
        if notes.len() > NOTES {
            let first = notes.first().map(|finding| finding.title.as_str()).unwrap_or_default();
            let are_machines = notes.iter().all(|note| note.object.kind == five_spot_api::names::KIND);
            let noun = if are_machines { "machine" } else { "object" };
            let number = wording::count(notes.len(), noun);
            self.headline(&mark, &format!("{number}: {} [{id}]", harmless(first)));
            return;
        }
        for finding in notes {
            self.headline(&mark, &format!("{} [{id}]", headline(finding)));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let mark = self.mark(Some(finding.severity));
        let head = format!("{} [{}]", headline(finding), finding.id);
        self.headline(&mark, &head);
        if !finding.cause.is_empty() {
            self.wrapped(&finding.cause, 6);
        }
        for words in &finding.evidence {
            self.wrapped(&format!("- {words}"), 6);
        }
        for fix in &finding.fix {
            self.fix(fix);
        }
        self.wrapped(&format!("see {}", finding.docs), 6);
    }

    /// The first line of a finding, wrapped under itself.
    fn headline(&mut self, mark: &str, words: &str) {
        for (index, line) in wrap(words, self.style.width, 4, 6).iter().enumerate() {
            if index == 0 {
                self.line(&format!("  {mark} {}", line.trim_start()));
            } else {
                self.line(line);
            }
        }
    }

    /// A command is never broken, so that it can be pasted.
    fn fix(&mut self, fix: &Fix) {
        let caution = if fix.safe { "" } else { "careful: " };
        if let Some(note) = &fix.note {
            self.wrapped(&format!("* {caution}{note}"), 6);
        }
        if let Some(command) = &fix.command {
            let command = self.style.paint(AnsiColor::Cyan.on_default(), &harmless(command));
            self.line(&format!("      > {command}"));
        }
    }
}

/// `desks/desk-17: the kill switch is on`. The clock of this computer is no object that needs a name.
fn headline(finding: &Finding) -> String {
    let title = harmless(&finding.title);
    if finding.object.kind == "Clock" { title } else { format!("{}: {title}", place(finding)) }
}

/// `desks/desk-17`, or `Lease 5spot-system/5spot-leader` for other kinds.
fn place(finding: &Finding) -> String {
    let object = &finding.object;
    let place = match (&object.namespace, object.kind.as_str()) {
        (Some(namespace), five_spot_api::names::KIND) => format!("{namespace}/{}", object.name),
        _ => object.to_string(),
    };
    harmless(&place)
}
