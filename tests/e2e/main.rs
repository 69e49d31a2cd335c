//! Tests of 5-Spot on a real control plane, and of the facts that its design relies on: a test fails if a new
//! version changes one. Run by `cargo xtask e2e`.

mod agent;
mod bench;
mod cluster_api;
mod completion;
mod conformance;
mod crd;
mod doctor;
mod frozen;
mod harness;
mod hostile;
mod install;
mod kubernetes;
mod leaders;
mod node;
mod permissions;
mod sandbox_clients;
mod scenarios;
mod shards;
mod shell;
mod startup;
mod why;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(done) = bench::asked_for() {
        return done;
    }
    // The tests on the real node and the scenarios take longest, so they start first.
    let tests = [
        install::tests(),
        node::tests(),
        scenarios::tests(),
        hostile::tests(),
        startup::tests(),
        doctor::tests(),
        frozen::tests(),
        leaders::tests(),
        shards::tests(),
        permissions::tests(),
        agent::tests(),
        cluster_api::tests(),
        conformance::tests(),
        completion::tests(),
        crd::tests(),
        kubernetes::tests(),
        sandbox_clients::tests(),
        why::tests(),
        harness::tests(),
    ];
    five_spot_testenv::harness::run(
        tests.into_iter().flatten().collect(),
        permissions::grants_are_used_and_enough,
    )
}
