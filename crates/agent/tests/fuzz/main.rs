//! Fuzzing of everything that the agent parses. `cargo xtask fuzz` runs it for as long as one likes.

mod process;
mod targets;

use std::path::PathBuf;
use targets::TARGETS;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

#[test]
fn the_corpus_does_no_harm() {
    five_spot_fuzz::replay(&corpus(), &TARGETS);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    five_spot_fuzz::mutate(&corpus(), &TARGETS);
}
