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
