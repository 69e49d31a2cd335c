//! The answer as text.

use crate::output::harmless;
use crate::style::{Charset, Style};
use crate::wording;
use crate::wrap::wrap;
use anstyle::AnsiColor;
use five_spot_diagnose::why::{Answer, BlockingCause, CauseFix, DeletionState, Step};
use std::fmt::Write as _;

/// More causes than that are left to `-o json`.
const CAUSES: usize = 8;

const BOLD: anstyle::Style = anstyle::Style::new().bold();
const DIMMED: anstyle::Style = anstyle::Style::new().dimmed();

/// The answer for people.
pub fn render(answer: &Answer, style: Style) -> String {
    let mut text = String::new();
    let (color, verdict) = verdict(answer);
    let title = style.paint(color.on_default().bold(), &harmless(&format!("{} {verdict}", answer.object)));
    text.push_str(&title);
    text.push_str("\n\n");
    for step in &answer.steps {
        push_step(&mut text, step, style);
    }
    let groups: Vec<&[BlockingCause]> = answer.causes.chunk_by(are_alike).collect();
    for group in groups.iter().take(CAUSES) {
        push_causes(&mut text, group, style);
    }
    if groups.len() > CAUSES {
        let further = wording::count(groups.len() - CAUSES, "more cause");
        let _ = writeln!(text, "\n{further}: use -o json");
    }
    text
}

/// The same cause on objects of the same kind, with the same fixes. It is shown once.
fn are_alike(one: &BlockingCause, other: &BlockingCause) -> bool {
    let essence = |cause: &BlockingCause| {
        (cause.object.kind.clone(), cause.cause.clone(), cause.needs_a_person, cause.fix.len())
    };
    essence(one) == essence(other)
}

fn verdict(answer: &Answer) -> (AnsiColor, String) {
    let blockers = answer.causes.iter().filter(|cause| cause.needs_a_person).count();
    match answer.state {
        DeletionState::Stuck => {
            let causes = wording::count(blockers, "cause");
            (AnsiColor::Red, format!("is stuck: {causes} will not go away without help"))
        }
        DeletionState::Deleting => {
            (AnsiColor::Yellow, "is being deleted; nothing indicates that it is stuck".to_owned())
        }
        DeletionState::NotDeleting if blockers > 0 => {
            (AnsiColor::Red, "is not being deleted, and something is wrong".to_owned())
        }
        DeletionState::NotDeleting => (AnsiColor::Green, "is not being deleted".to_owned()),
        DeletionState::Gone => (AnsiColor::Green, "is gone".to_owned()),
    }
}

fn push_step(text: &mut String, step: &Step, style: Style) {
    let indent = 2 * step.depth;
    let branch = match (step.depth, style.charset) {
        (0, _) => "",
        (_, Charset::Unicode) => "└ ",
        (_, Charset::Ascii) => "- ",
    };
    let object = style.paint(BOLD, &harmless(&step.object.to_string()));
    let relation = if step.depth == 0 { String::new() } else { format!(", {}", harmless(&step.relation)) };
    let _ = writeln!(text, "{}{branch}{object}{relation}", " ".repeat(indent.saturating_sub(2)));
    for evidence in &step.evidence {
        push_wrapped(text, evidence, style, indent + 2, Some(DIMMED));
    }
}

fn push_causes(text: &mut String, causes: &[BlockingCause], style: Style) {
    let [first, others @ ..] = causes else { return };
    let word = if first.needs_a_person { "Cause" } else { "Waiting for" };
    let also = match others.len() {
        0 => String::new(),
        number => format!(" and {}", wording::count(number, "more object")),
    };
    let _ = writeln!(text, "\n{}", style.paint(BOLD, &harmless(&format!("{word}: {}{also}", first.object))));
    push_wrapped(text, &first.cause, style, 2, None);
    for evidence in &first.evidence {
        let bullet = match style.charset {
            Charset::Unicode => "• ",
            Charset::Ascii => "* ",
        };
        push_wrapped(text, &format!("{bullet}{evidence}"), style, 4, Some(DIMMED));
    }
    for (index, fix) in first.fix.iter().enumerate() {
        let commands = causes.iter().filter_map(|cause| cause.fix.get(index)).map(|fix| fix.command.as_str());
        push_fix(text, fix, commands.collect(), index + 1, style);
    }
}

/// The consequences stand before the command.
fn push_fix(text: &mut String, fix: &CauseFix, mut commands: Vec<&str>, number: usize, style: Style) {
    let (color, safe) = if fix.safe { (AnsiColor::Green, "safe") } else { (AnsiColor::Yellow, "not safe") };
    let _ = writeln!(text, "  Fix {number}, {}:", style.paint(color.on_default(), safe));
    if let Some(warning) = &fix.warning {
        push_wrapped(text, warning, style, 4, Some(color.on_default()));
    }
    // A command for all of them is the same for each.
    commands.dedup();
    for command in commands {
        // Never wrapped: it is there to be copied.
        let _ = writeln!(text, "    $ {}", harmless(command));
    }
}

fn push_wrapped(
    text: &mut String,
    content: &str,
    style: Style,
    indent: usize,
    paint: Option<anstyle::Style>,
) {
    let content = harmless(content);
    // The text of a bullet stands under its first word.
    let hanging = if content.starts_with(['•', '*']) { indent + 2 } else { indent };
    for line in wrap(&content, style.width, indent, hanging) {
        let body = line.trim_start();
        let margin = &line[..line.len() - body.len()];
        let body = paint.map_or_else(|| body.to_owned(), |paint| style.paint(paint, body));
        let _ = writeln!(text, "{margin}{body}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use five_spot_diagnose::object::ReportedObject;

    fn answer() -> Answer {
        let pod = ReportedObject::namespaced("Pod", "shop", "web-0");
        Answer {
            object: ReportedObject::cluster_scoped("Namespace", "shop"),
            state: DeletionState::Stuck,
            steps: vec![
                Step {
                    object: ReportedObject::cluster_scoped("Namespace", "shop"),
                    relation: "the object in question".to_owned(),
                    evidence: vec!["deletion requested 2026-11-17T11:00:00Z, 1h ago".to_owned()],
                    depth: 0,
                },
                Step {
                    object: pod.clone(),
                    relation: "remains in the namespace".to_owned(),
                    evidence: vec!["its owner StatefulSet web does not exist any more".to_owned()],
                    depth: 1,
                },
            ],
            causes: vec![BlockingCause {
                object: pod,
                cause: "it runs on Node desk, which is not Ready".to_owned(),
                evidence: vec![
                    "Node desk: Ready=Unknown (NodeStatusUnknown): Kubelet stopped posting node status."
                        .to_owned(),
                ],
                fix: vec![CauseFix::harmful(
                    "kubectl delete pod web-0 -n shop --grace-period=0 --force",
                    "The resource may continue to run on the cluster indefinitely.",
                )],
                needs_a_person: true,
            }],
        }
    }

    #[test]
    fn the_warning_stands_before_the_command() {
        let style = Style { width: 60, charset: Charset::Unicode, colored: false };
        let expected = "\
Namespace shop is stuck: 1 cause will not go away without help

Namespace shop
  deletion requested 2026-11-17T11:00:00Z, 1h ago
└ Pod shop/web-0, remains in the namespace
    its owner StatefulSet web does not exist any more

Cause: Pod shop/web-0
  it runs on Node desk, which is not Ready
    • Node desk: Ready=Unknown (NodeStatusUnknown): Kubelet
      stopped posting node status.
  Fix 1, not safe:
    The resource may continue to run on the cluster
    indefinitely.
    $ kubectl delete pod web-0 -n shop --grace-period=0 --force
";
        assert_eq!(render(&answer(), style), expected);
    }

    #[test]
    fn the_same_cause_is_shown_once() {
        let mut answer = answer();
        let mut other = answer.causes[0].clone();
        other.object.name = "web-1".to_owned();
        other.fix[0].command = "kubectl delete pod web-1 -n shop --grace-period=0 --force".to_owned();
        answer.causes.push(other);
        let text = render(&answer, Style { width: 80, charset: Charset::Unicode, colored: false });
        assert!(text.contains("Cause: Pod shop/web-0 and 1 more object\n"), "{text}");
        assert_eq!(text.matches("which is not Ready").count(), 1, "{text}");
        assert!(
            text.contains("$ kubectl delete pod web-0 ") && text.contains("$ kubectl delete pod web-1 "),
            "{text}"
        );
    }

    /// Owner references and the names in other objects are not checked by the API server.
    #[test]
    fn nothing_in_an_answer_steers_a_terminal() {
        let evil = "a\u{1b}[2J\u{9b}m\u{202e}\nb";
        let mut answer = answer();
        answer.object.name = evil.to_owned();
        answer.steps[1].object.name = evil.to_owned();
        answer.steps[1].relation = format!("owned by {evil}");
        answer.steps[1].evidence = vec![evil.to_owned()];
        answer.causes[0].object.name = evil.to_owned();
        answer.causes[0].cause = evil.to_owned();
        answer.causes[0].evidence = vec![evil.to_owned()];
        answer.causes[0].fix[0] = CauseFix::harmful(evil, evil);
        let text = render(&answer, Style { width: 60, charset: Charset::Unicode, colored: false });
        let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(steers), "{text:?}");
        assert!(!text.lines().any(|line| line == "b"), "{text}");
    }

    #[test]
    fn ascii_and_colours_are_matters_of_style() {
        let plain = render(&answer(), Style { width: 60, charset: Charset::Ascii, colored: false });
        assert!(plain.is_ascii(), "{plain}");
        let colored = render(&answer(), Style { width: 60, charset: Charset::Ascii, colored: true });
        assert!(colored.starts_with("\u{1b}["), "{colored}");
    }
}
