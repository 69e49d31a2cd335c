//! The pages under `docs` name what there is.

use crate::seed::{ADDITIONS, EVENTS, METRICS};
use five_spot_controller::args::Args;
use five_spot_controller::metrics::{ErrorKind, PENDING};
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_metric_is_on_its_page_with_type_and_labels() {
    let page = page("metrics.md");
    for row in METRICS.iter().chain(&ADDITIONS) {
        let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!(" {}", labels.join(", ")) };
        let line = format!("| `{}` | {} |{labels} | ", row.name, row.kind);
        assert!(page.contains(&line), "{line}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `fivespot_")).count();
    assert_eq!(rows, METRICS.len() + ADDITIONS.len());
    for kind in ErrorKind::ALL {
        assert!(page.contains(&format!("`{}`", kind.as_str())), "{kind:?}");
    }
}

/// Collects all files with this extension below a directory.
fn files(directory: &Path, extension: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|ending| ending == extension) {
            found.push(std::fs::read_to_string(&path).expect("a file"));
        }
    }
}

/// With a label selector, `kubectl logs` prints ten lines of each pod by default, in which a filter finds nothing.
#[test]
fn commands_for_logs_say_how_many_lines_they_want() {
    let mut pages = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"), "md", &mut pages);
    let lines = pages.iter().flat_map(|page| page.lines());
    let selecting: Vec<&str> =
        lines.filter(|line| line.contains("kubectl logs") && line.contains(" -l ")).collect();
    assert!(selecting.len() > 10, "{selecting:?}");
    for line in selecting {
        assert!(line.contains("--tail="), "{line}");
    }
}

#[test]
fn every_guarantee_names_a_test_that_exists() {
    let page = page("security.md");
    let guarantees = page.split("## Guarantees").nth(1).and_then(|rest| rest.split("\n## ").next());
    let mut found = Vec::new();
    for directory in ["crates", "tests"] {
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory), "rs", &mut found);
    }
    let rows: Vec<&str> =
        guarantees.expect("a section").lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit(" | ").next().unwrap_or_default().trim();
        assert!(!tests.is_empty() && row.matches(" | ").count() > 0, "no test: {row}");
        for name in tests.split('`').skip(1).step_by(2) {
            let is_test =
                name.len() > 20 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let defined = [format!("fn {name}("), format!("\"{name}\"")];
            let exists = || found.iter().any(|text| defined.iter().any(|words| text.contains(words)));
            assert!(!is_test || exists(), "{name} does not exist: {row}");
        }
    }
}

#[test]
fn every_event_is_on_its_page_with_its_type() {
    let page = page("events.md");
    for (kind, reason) in EVENTS {
        let line = page.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{reason}`")));
        assert!(line.is_some_and(|line| line.starts_with(&format!("| {kind} |"))), "{reason}: {line:?}");
    }
}

#[test]
fn every_flag_is_documented_and_pending_ones_listed() {
    let (configuration, checklist) = (page("configuration.md"), page("operator-checklist.md"));
    for argument in <Args as clap::CommandFactory>::command().get_arguments() {
        let flag = format!("--{}", argument.get_long().expect("every flag has a long name"));
        assert!(configuration.contains(&flag), "{flag}");
        if let Some(variable) = argument.get_env() {
            assert!(configuration.contains(&*variable.to_string_lossy()), "{variable:?}");
        }
    }
    let pending = checklist.split("## Pending").nth(1).expect("a list");
    for metric in PENDING {
        assert!(pending.contains(metric), "{metric}");
    }
}
