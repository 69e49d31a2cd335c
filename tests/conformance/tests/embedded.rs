//! The in-memory API server gives the recorded responses of a real kube-apiserver.

use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_conformance::{Case, Differences, Recording, Runner, Suite, compare, walk};
use std::path::PathBuf;
use std::time::Duration;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(start_paused = true)]
async fn answers_like_the_real_server() {
    let mut suite = Suite::load(&directory()).expect("the suite can be read");
    suite.cases.extend((1..=5).map(|seed| walk(seed, 100)));
    let recording = Recording::load(&directory().join("recorded")).expect("the recording can be read");
    let differences =
        Differences::load(&directory().join("differences.yaml")).expect("the differences can be read");
    let start = "2026-03-02T08:00:00Z".parse().expect("a timestamp");
    let api = ApiServer::new(ApiServerConfig::new(Clock::starting_at(start)));
    let runner = Runner::new(api.client("default"), "case", Duration::from_millis(100));
    runner.set_up(&suite).await.expect("the kinds of the suite are accepted");
    let mut report = Vec::new();
    let mut used = Vec::new();
    for (number, case) in suite.cases.iter().enumerate() {
        let id = case.id();
        let answers = match runner.run(case, number).await {
            Ok(answers) => answers.to_value(),
            Err(error) => {
                report.push(format!("{id}: {error}"));
                continue;
            }
        };
        let Some(expected) = recording.answers.get(&id) else {
            report.push(format!("{id}: no answer of a real server is recorded"));
            continue;
        };
        for mismatch in compare(expected, &answers) {
            match differences.explain(&id, &mismatch) {
                Some(difference) => used.push(difference.name.clone()),
                None => report.push(format!("{id}\n    {mismatch}")),
            }
        }
    }
    for difference in &differences.0 {
        if !used.contains(&difference.name) {
            report.push(format!("the difference {:?} explains nothing any more", difference.name));
        }
    }
    assert!(
        report.is_empty(),
        "{} problems in {} cases:\n{}",
        report.len(),
        suite.cases.len(),
        report.join("\n")
    );
}

#[test]
fn the_suite_is_as_large_as_it_should_be() {
    let suite = Suite::load(&directory()).expect("the suite can be read");
    assert!(suite.cases.len() >= 300, "{} cases", suite.cases.len());
    let mut ids: Vec<String> = suite.cases.iter().map(Case::id).collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "every case has a name of its own");
}
