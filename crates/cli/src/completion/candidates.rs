//! The candidates for a word of a command line.

use super::names::{self, ClusterNames};
use crate::args::{Args, are_for_the_controller};
use crate::cluster_access::ClusterArgs;
use crate::output::harmless;
use clap::{Arg, ArgMatches, Command, CommandFactory, ValueHint};
use clap_complete::engine::{self, ArgValueCompleter, CompletionCandidate};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the shell to add no space after a candidate.
const NO_SPACE: u8 = 2;

/// Tells the shell that files are no candidates.
const NO_FILES: u8 = 4;

/// The values of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// Files, which the shell completes.
    Files,
    /// Names that depend on the cluster.
    Names(names::NameKind),
}

/// The candidates for the last word of a line, in the protocol of cobra. The first word is the program.
pub fn complete(mut line: Vec<OsString>, is_plugin: bool) -> String {
    if line.len() < 2 {
        line.push(OsString::new());
    }
    let command = if !is_plugin && are_for_the_controller(&line) {
        five_spot_controller::args::Args::command()
    } else {
        Args::command()
    };
    let names = Arc::new(cluster_names(&command, &line));
    let files = Arc::new(AtomicBool::new(false));
    let mut command = with_completers(command, &names, &files);
    let last = line.len() - 1;
    let is_flag = line.last().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let mut found = engine::complete(&mut command, line, last, None).unwrap_or_default();
    // Flags are offered to those who have typed a dash.
    found.retain(|candidate| is_flag || !candidate.get_value().as_encoded_bytes().starts_with(b"-"));
    render(&found, files.load(Ordering::Relaxed))
}

fn render(found: &[CompletionCandidate], files: bool) -> String {
    let mut text = String::new();
    let mut directive = if files { 0 } else { NO_FILES };
    for candidate in found {
        let value = candidate.get_value().to_string_lossy();
        // The name of an object follows its kind.
        if value.ends_with('/') {
            directive |= NO_SPACE;
        }
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        let separator = if help.is_empty() { "" } else { "\t" };
        let _ = writeln!(text, "{}{separator}{}", harmless(&value), harmless(help));
    }
    let _ = writeln!(text, ":{directive}");
    text
}

/// The command with completers for the values that clap does not know.
fn with_completers(command: Command, names: &Arc<ClusterNames>, files: &Arc<AtomicBool>) -> Command {
    let name = command.get_name().to_owned();
    let complete = |arg: Arg| match values(&name, &arg) {
        Some(Values::Files) => {
            let files = Arc::clone(files);
            arg.add(ArgValueCompleter::new(move |_: &OsStr| {
                files.store(true, Ordering::Relaxed);
                Vec::new()
            }))
        }
        Some(Values::Names(kind)) => {
            let names = Arc::clone(names);
            arg.add(ArgValueCompleter::new(move |word: &OsStr| {
                let word = word.to_str().unwrap_or_default();
                names.like(kind, word).into_iter().map(CompletionCandidate::new).collect::<Vec<_>>()
            }))
        }
        None => arg,
    };
    command.mut_args(complete).mut_subcommands(|command| with_completers(command, names, files))
}

/// The values of an argument of a command, by the name of its field.
fn values(command: &str, arg: &Arg) -> Option<Values> {
    use names::NameKind;
    match (command, arg.get_id().as_str()) {
        ("explain" | "doctor", "name") | ("preview", "names") => Some(Values::Names(NameKind::Machines)),
        ("why", "object") => Some(Values::Names(NameKind::Objects)),
        ("create", "cluster") => Some(Values::Names(NameKind::Clusters)),
        (_, "namespace" | "watch_namespace" | "management_nodes_namespace") => {
            Some(Values::Names(NameKind::Namespaces))
        }
        (_, "context") => Some(Values::Names(NameKind::Contexts)),
        _ => {
            let hint = arg.get_value_hint();
            matches!(hint, ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
                .then_some(Values::Files)
        }
    }
}

/// The cluster and the namespace of a line that is not finished.
fn cluster_names(command: &Command, line: &[OsString]) -> ClusterNames {
    let before = &line[..line.len() - 1];
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(before) else {
        return ClusterNames::default();
    };
    let mut matches = &matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    let text = |id: &str| value::<String>(matches, id);
    let cluster = ClusterArgs {
        kubeconfig: value::<PathBuf>(matches, "kubeconfig").map(expand),
        context: text("context"),
    };
    ClusterNames { cluster, namespace: text("namespace") }
}

/// The value of an argument, if the command has such an argument and the line has it.
fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.try_get_one::<T>(id).ok().flatten().cloned()
}

/// The path without `~`, which the shell expands only when the line is run.
fn expand(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        (Ok(_) | Err(_), _) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The candidates without their descriptions, and the number at the end.
    fn candidates(line: &str) -> (Vec<String>, String) {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let is_plugin = crate::args::is_plugin(&line);
        let text = complete(line, is_plugin);
        let mut lines: Vec<String> =
            text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
        let directive = lines.pop().expect("a last line");
        (lines, directive)
    }

    #[test]
    fn commands_flags_and_values_are_completed() {
        for (line, expected, directive) in [
            ("5spot ex", &["explain"][..], ":4"),
            ("5spot completion ", &["bash", "zsh", "fish", "kubectl"], ":4"),
            ("5spot doctor --fail-on ", &["error", "warning", "never"], ":4"),
            ("5spot doctor --fail-on=w", &["--fail-on=warning"], ":4"),
            ("5spot doctor -A --sh", &["--short"], ":4"),
            ("5spot kubeconfig c", &["create"], ":4"),
            ("5spot preview -f ", &[], ":0"),
            ("5spot preview --filename=a", &[], ":0"),
            ("5spot explain --kubeconfig ", &[], ":0"),
            ("5spot explain --nonsense ", &[], ":4"),
            ("5spot --watch-n", &["--watch-namespace"], ":4"),
            ("kubectl-5spot --watch-n", &[], ":4"),
            ("kubectl-5spot ex", &["explain"], ":4"),
        ] {
            let line = line.replace("explain --nonsense", "explain --kubeconfig /nowhere --nonsense");
            assert_eq!(
                candidates(&line),
                (expected.iter().map(ToString::to_string).collect(), directive.to_owned()),
                "{line}"
            );
        }
    }

    #[test]
    fn all_commands_are_offered_but_no_flags_before_a_dash() {
        let (commands, _) = candidates("5spot ");
        for command in Args::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(commands.iter().any(|offered| offered == command.get_name()), "{commands:?}");
        }
        assert!(commands.iter().all(|offered| !offered.starts_with('-')), "{commands:?}");
        assert!(candidates("5spot explain -").0.contains(&"-n".to_owned()));
    }

    #[test]
    fn every_argument_with_names_of_the_cluster_exists() {
        fn collect(command: &Command, found: &mut Vec<(String, Values)>) {
            for arg in command.get_arguments() {
                if let Some(values) = values(command.get_name(), arg) {
                    found.push((format!("{} {}", command.get_name(), arg.get_id()), values));
                }
            }
            command.get_subcommands().for_each(|command| collect(command, found));
        }
        let mut command = Args::command();
        command.build();
        let mut found = Vec::new();
        collect(&command, &mut found);
        collect(&five_spot_controller::args::Args::command(), &mut found);
        for (expected, kind) in [
            ("explain name", names::NameKind::Machines),
            ("doctor name", names::NameKind::Machines),
            ("preview names", names::NameKind::Machines),
            ("why object", names::NameKind::Objects),
            ("create cluster", names::NameKind::Clusters),
            ("explain context", names::NameKind::Contexts),
            ("debug-bundle namespace", names::NameKind::Namespaces),
            ("5spot-controller watch_namespace", names::NameKind::Namespaces),
            ("5spot-controller management_nodes_namespace", names::NameKind::Namespaces),
        ] {
            assert!(found.contains(&(expected.to_owned(), Values::Names(kind))), "{expected}: {found:?}");
        }
    }

    #[test]
    fn the_flags_of_the_line_choose_the_cluster() {
        let chosen = |line: &str| {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let names = cluster_names(&Args::command(), &line);
            (names.namespace, names.cluster.context, names.cluster.kubeconfig)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            chosen("5spot explain -n desks --context=lab --kubeconfig /a d"),
            (some("desks"), some("lab"), Some("/a".into()))
        );
        assert_eq!(chosen("5spot why --namespace desks po"), (some("desks"), None, None));
        assert_eq!(chosen("5spot sandbox --once "), (None, None, None));
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        assert_eq!(chosen("5spot doctor --kubeconfig ~/lab ").2, Some(home.join("lab")));
    }
}
