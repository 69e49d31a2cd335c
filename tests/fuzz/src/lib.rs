//! Fuzzing of parsers: a corpus that is replayed, and mutations of it.
//!
//! Every crate has its targets and their corpus next to its parsers, and two tests that call [`replay`] and
//! [`mutate`]. `cargo test` tries a fixed number of mutations; `cargo xtask fuzz` runs for a given time. A
//! failure prints the input: add it to the corpus of its target, and every later test run replays it.

mod mutate;

use mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The variable with the seconds per target; without it, the number of inputs is fixed.
pub const SECONDS_VARIABLE: &str = "FIVE_SPOT_FUZZ_SECONDS";
/// The variable with the seed of the mutations.
pub const SEED_VARIABLE: &str = "FIVE_SPOT_FUZZ_SEED";
/// The variable with the only target to fuzz; without it, all are fuzzed.
pub const TARGET_VARIABLE: &str = "FIVE_SPOT_FUZZ_TARGET";

/// The number of mutations per target in a normal test run.
const MUTATIONS: u64 = 20_000;

/// A parser under test: its name, which is also the name of its folder in the corpus, and a function that
/// accepts any bytes and panics on an error.
pub type Target = (&'static str, fn(&[u8]));

/// Returns the inputs of a target in the corpus.
///
/// # Panics
/// Panics if there are none.
fn inputs(corpus: &Path, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = corpus.join(target);
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

/// Passes every input of the corpus to its target.
///
/// # Panics
/// Panics if a target does.
pub fn replay(corpus: &Path, targets: &[Target]) {
    for (name, target) in targets {
        for (path, input) in inputs(corpus, name) {
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(outcome.is_ok(), "{name}: {}", path.display());
        }
    }
}

/// Passes mutations of the corpus to their targets.
///
/// # Panics
/// Panics if a target does, with the input in the message.
pub fn mutate(corpus: &Path, targets: &[Target]) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (seconds, seed) = (number(SECONDS_VARIABLE), number(SEED_VARIABLE).unwrap_or(1));
    let only = std::env::var(TARGET_VARIABLE).ok();
    for (name, target) in targets.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let corpus: Vec<Vec<u8>> = inputs(corpus, name).into_iter().map(|(_, input)| input).collect();
        let mut mutator = Mutator::new(seed, corpus);
        let started = Instant::now();
        let mut count: u64 = 0;
        let goes_on = |count: u64| match seconds {
            Some(seconds) => started.elapsed() < Duration::from_secs(seconds),
            None => count < MUTATIONS,
        };
        while goes_on(count) {
            let input = mutator.next_input();
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
            let shown = || input.escape_ascii().to_string();
            assert!(outcome.is_ok(), "{name}, seed {seed}, input {count}: {:?}", shown());
            count += 1;
        }
        println!("fuzz {name}: {count} inputs in {:.1} s", started.elapsed().as_secs_f64());
    }
}
