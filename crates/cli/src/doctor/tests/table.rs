//! The table of `docs/doctor.md` that says which tests prove each finding is complete and true.

use super::collected::covered;
use five_spot_diagnose::doctor::FindingId;
use std::fs;
use std::path::{Path, PathBuf};

/// A row: the id, the worlds of the pure table, the tests with the controller, the tests with real components.
struct Row {
    id: String,
    worlds: Vec<String>,
    with_controller: Vec<String>,
    real: Vec<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(repository().join("docs/doctor.md")).expect("the page");
    let (_, rest) = page.split_once("## The tests of each finding\n").expect("the section");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| `"));
    // Some fixes are for people to think about: there is nothing to apply.
    let is_test = |part: &String| part != "-" && part != "advice only";
    let cells = |cell: &str| -> Vec<String> {
        let parts = cell.split(", ").map(|part| part.trim().trim_matches('`').to_owned());
        parts.filter(is_test).collect()
    };
    let row = |line: &str| {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, worlds, with_controller, real] = columns.as_slice() else { panic!("{line}") };
        Row {
            id: id.trim_matches('`').to_owned(),
            worlds: worlds.split("; ").map(str::to_owned).collect(),
            with_controller: cells(with_controller),
            real: cells(real),
        }
    };
    lines.map(row).collect()
}

/// The Rust files below a folder of the repository.
fn sources(folder: &str) -> Vec<String> {
    let mut folders = vec![repository().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    found
}

/// True if a file has a test of that name, and names the finding.
fn proves(sources: &[String], test: &str, finding: &str) -> bool {
    let function = format!("fn {test}(");
    sources.iter().any(|source| source.contains(&function) && source.contains(finding))
}

#[test]
fn every_finding_has_a_row_in_the_table_of_tests() {
    let documented: Vec<String> = rows().into_iter().map(|row| row.id).collect();
    let ids: Vec<&str> = FindingId::ALL.iter().map(|id| id.as_str()).collect();
    assert_eq!(documented, ids);
}

#[test]
fn every_finding_is_proved_from_collected_facts() {
    let covered = covered();
    let missing: Vec<&FindingId> = FindingId::ALL.iter().filter(|id| !covered.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_tests_in_the_table_exist() {
    let worlds = sources("crates/diagnose/tests/findings");
    let with_controller = sources("crates/cli/src/doctor/tests");
    let real = sources("tests/e2e");
    for (row, id) in rows().iter().zip(FindingId::ALL) {
        for world in &row.worlds {
            let quoted = format!("\"{world}\"");
            assert!(worlds.iter().any(|source| source.contains(&quoted)), "{id}: {world}");
        }
        for test in &row.with_controller {
            assert!(proves(&with_controller, test, &format!("FindingId::{id:?}")), "{id}: {test}");
        }
        for test in &row.real {
            assert!(proves(&real, test, id.as_str()), "{id}: {test}");
        }
    }
}
