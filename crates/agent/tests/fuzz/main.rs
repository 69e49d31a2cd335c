//! Fuzzing of everything that the agent parses: a corpus that is replayed, and mutations of it.
//!
//! `cargo test -p five-spot-agent --test fuzz` replays the corpus and tries a fixed number of mutations. For as long as one
//! likes, with one line of output per target:
//!
//! `FIVE_SPOT_FUZZ_SECONDS=600 cargo test --release -p five-spot-agent --test fuzz -- --nocapture`
//!
//! A failure prints the input; put it into `tests/fuzz/corpus/<target>/` and it is replayed from then on.

mod mutate;
mod process;
mod targets;

use mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use targets::TARGETS;

/// Mutations of each target in an ordinary test run.
const MUTATIONS: u64 = 20_000;

/// The inputs of a target that are kept in the repository.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("a file").path();
            let content = std::fs::read(&path).expect("a file");
            (path, content)
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no corpus in {}", folder.display());
    inputs
}

#[test]
fn the_corpus_does_no_harm() {
    for (name, target) in TARGETS {
        for (path, input) in corpus(name) {
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(outcome.is_ok(), "{name}: {}", path.display());
        }
    }
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    let seconds = std::env::var("FIVE_SPOT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("FIVE_SPOT_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for (name, target) in TARGETS {
        let inputs: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, input)| input).collect();
        let mut mutator = Mutator::new(seed, inputs);
        let started = Instant::now();
        let mut count: u64 = 0;
        let goes_on = |count: u64| match seconds {
            Some(seconds) => started.elapsed() < Duration::from_secs(seconds),
            None => count < MUTATIONS,
        };
        while goes_on(count) {
            let input = mutator.next_input();
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(
                outcome.is_ok(),
                "{name}, seed {seed}, input {count}: {:?}",
                input.escape_ascii().to_string()
            );
            count += 1;
        }
        println!("{name}: {count} inputs in {:.1} s", started.elapsed().as_secs_f64());
    }
}
