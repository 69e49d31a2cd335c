//! Sends the conformance suite to the server of a kubeconfig: `record` stores its responses, `check` compares
//! them with the recorded ones, and `walk` compares it with the in-memory API server on random operations.
//!
//! `cargo run -p five-spot-conformance -- record tests/conformance [case prefix]`

use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_conformance::{Case, Recording, Runner, Suite, compare, walk};
use std::path::PathBuf;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| "tests/conformance".to_owned()));
    let wanted = arguments.next().unwrap_or_default();
    let mut suite = Suite::load(&directory)?;
    suite.cases.extend((1..=5).map(|seed| walk(seed, 100)));
    let recorded = directory.join("recorded");
    let mut recording = Recording::load(&recorded).unwrap_or_default();
    let mut config = kube::Config::infer().await?;
    // A refusal is a result here, so nothing is retried.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let prefix = format!("c{}", std::process::id());
    let runner = Runner::new(client, &prefix, Duration::from_millis(100));
    runner.set_up(&suite).await?;
    if mode == "walk" {
        return walk_on_both(&runner, &suite, wanted.parse().unwrap_or(25)).await;
    }
    let mut failures = 0;
    let cases: Vec<_> = suite.cases.iter().filter(|case| case.id().starts_with(&wanted)).cloned().collect();
    for (case, answers) in runner.run_all(&cases, 12).await {
        match answers {
            Ok(answers) if mode == "record" => recording.record(&case.id(), &answers),
            Ok(answers) => {
                let expected = recording.answers.get(&case.id()).cloned().unwrap_or_default();
                let mismatches = compare(&expected, &answers.to_value());
                if !mismatches.is_empty() {
                    failures += 1;
                    println!("{}", case.id());
                    for mismatch in mismatches {
                        println!("    {mismatch}");
                    }
                }
            }
            Err(error) => {
                failures += 1;
                println!("{}: {error:?}", case.id());
            }
        }
    }
    if mode == "record" {
        let ids: Vec<String> = suite.cases.iter().map(Case::id).collect();
        recording.answers.retain(|id, _| ids.contains(id));
        recording.save(&recorded)?;
    }
    println!("{} cases, {failures} failed", cases.len());
    runner.tear_down(cases.len()).await?;
    if failures == 0 { Ok(()) } else { Err("some cases failed".into()) }
}

/// Runs the same random walks on the real and the in-memory server.
async fn walk_on_both(real: &Runner, suite: &Suite, walks: u64) -> Result<(), Box<dyn std::error::Error>> {
    let walks: Vec<Case> = (1..=walks).map(|seed| walk(seed, 100)).collect();
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let embedded = Runner::new(api.client("default"), "walk", Duration::from_millis(1));
    embedded.set_up(suite).await?;
    let (expected, found) = (real.run_all(&walks, 12).await, embedded.run_all(&walks, 12).await);
    let mut differences = 0;
    for ((case, expected), (_, found)) in expected.into_iter().zip(found) {
        for mismatch in compare(&expected?.to_value(), &found?.to_value()) {
            differences += 1;
            println!("{}\n    {mismatch}", case.id());
        }
    }
    println!("{} operations, {differences} differences", walks.len() * 100);
    real.tear_down(walks.len()).await?;
    if differences == 0 { Ok(()) } else { Err("the servers differ".into()) }
}
