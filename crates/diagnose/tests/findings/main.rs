//! Every finding, each produced by a world of its own, and nothing else found there.

mod controllers;
mod fixtures;
mod machines;
mod many;
mod workloads;

use five_spot_diagnose::doctor::{DoctorFacts, FindingId, Severity, examine};
use fixtures::healthy;
use std::collections::BTreeSet;
use std::path::Path;

/// A world: its name, the finding, its severity, and the facts.
pub type World = (&'static str, FindingId, Severity, DoctorFacts);

fn all() -> Vec<World> {
    [controllers::all(), machines::all(), workloads::all()].into_iter().flatten().collect()
}

#[test]
fn a_healthy_world_has_no_findings() {
    let report = examine(&healthy());
    assert_eq!(report.findings, []);
    assert_eq!(report.checked, 1);
    assert_eq!(report.gravest(), None);
}

#[test]
fn each_world_has_exactly_its_finding() {
    for (name, id, severity, facts) in all() {
        let report = examine(&facts);
        let found: Vec<(&str, Severity)> =
            report.findings.iter().map(|finding| (finding.id.as_str(), finding.severity)).collect();
        assert_eq!(found, [(id.as_str(), severity)], "{name}: {:#?}", report.findings);
    }
}

#[test]
fn every_id_has_a_world() {
    let seen: BTreeSet<FindingId> = all().iter().map(|(_, id, ..)| *id).collect();
    let missing: Vec<&str> =
        FindingId::ALL.iter().filter(|id| !seen.contains(id)).map(|id| id.as_str()).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_finding_has_a_cause_evidence_a_fix_and_a_page() {
    for (name, _, _, facts) in all() {
        for finding in examine(&facts).findings {
            assert!(!finding.title.is_empty() && !finding.cause.is_empty(), "{name}: {finding:?}");
            assert!(!finding.evidence.is_empty(), "{name}: {finding:?}");
            assert!(!finding.fix.is_empty(), "{name}: {finding:?}");
            assert!(finding.fix.iter().all(|fix| fix.command.is_some() || fix.note.is_some()), "{name}");
            assert!(
                finding.fix.first().is_some_and(|fix| fix.safe) || finding.fix.len() == 1,
                "{name}: {finding:?}"
            );
            assert_eq!(finding.docs, format!("docs/troubleshooting/{}.md", finding.id), "{name}");
            let placeholders = finding.fix.iter().filter_map(|fix| fix.command.as_deref());
            for command in placeholders {
                assert!(!command.contains('<') && !command.contains("  "), "{name}: {command}");
            }
        }
    }
}

#[test]
fn every_id_has_a_complete_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting");
    for id in FindingId::ALL {
        let path = folder.join(format!("{id}.md"));
        let page =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(page.starts_with(&format!("# {id}\n")), "{id}");
        for heading in ["## Symptom", "## Meaning", "## Evidence", "## Fix", "## Prevention"] {
            let part = page.split_once(&format!("{heading}\n")).map(|(_, rest)| rest);
            let part = part.unwrap_or_else(|| panic!("{id} lacks {heading}"));
            let body = part.split("\n## ").next().unwrap_or_default().trim();
            assert!(body.len() > 20, "{id}: {heading} is empty");
        }
    }
    let pages = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(pages, FindingId::ALL.len(), "no page without a finding");
}

#[test]
fn the_json_has_the_documented_shape() {
    let (_, _, _, facts) =
        all().into_iter().find(|(_, id, ..)| *id == FindingId::PdbBlocksDrain).expect("a world");
    let json = serde_json::to_value(examine(&facts)).expect("JSON");
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&json), ["checked", "findings"]);
    let finding = &json["findings"][0];
    assert_eq!(keys(finding), ["cause", "docs", "evidence", "fix", "id", "object", "severity", "title"]);
    assert_eq!(keys(&finding["object"]), ["kind", "name", "namespace"]);
    assert!(["error", "warning", "info"].contains(&finding["severity"].as_str().expect("text")));
    for fix in finding["fix"].as_array().expect("a list") {
        assert!(fix["safe"].is_boolean());
        assert!(keys(fix).iter().all(|key| ["command", "note", "safe"].contains(&key.as_str())));
    }
}

/// Whatever objects hold, judging them does not panic.
#[test]
fn garbage_is_no_reason_to_panic() {
    use serde_json::{Value, json};
    let garbage =
        [json!(null), json!(7), json!("x"), json!([]), json!({}), json!([[1]]), json!({"metadata": 1})];
    for one in &garbage {
        for other in &garbage {
            let mut facts = healthy();
            let object: Value = json!({"metadata": one, "spec": other, "status": one});
            facts.machines = vec![five_spot_diagnose::doctor::MachineFacts::new(object.clone())];
            facts.capi_machines = vec![object.clone(), one.clone()];
            facts.events = vec![object.clone(), other.clone()];
            if let Some(pods) = &mut facts.controller.pods {
                pods[0].pod = object.clone();
            }
            facts.controller.owners = Some(vec![object]);
            examine(&facts);
        }
    }
}
