//! The duration of a decision. The aim is below 20 microseconds: ten thousand objects are decided upon in a
//! fifth of a second.

#[path = "../tests/lifecycle/simulation/mod.rs"]
#[allow(dead_code)]
mod simulation;

use criterion::{Criterion, criterion_group, criterion_main};
use five_spot_core::{ValidSpec, decide};
use simulation::{Simulation, office_hours};
use std::hint::black_box;

fn decisions(criterion: &mut Criterion) {
    let spec = ValidSpec::parse(&office_hours()).expect("a valid spec");
    let mut resting = Simulation::new(office_hours());
    resting.advance_to("2026-11-16T08:30:00Z");
    let mut running = resting.clone();
    running.advance_to("2026-11-16T10:00:00Z");
    let mut draining = running.clone();
    let names: Vec<String> = (0..30).map(|number| format!("pod-{number:02}")).collect();
    draining.start_pods(&names.iter().map(String::as_str).collect::<Vec<_>>());
    draining.budget_blocks = true;
    draining.advance_to("2026-11-16T18:00:30Z");
    for (name, simulation) in [("resting", resting), ("running", running), ("draining 30 pods", draining)] {
        criterion.bench_function(&format!("decide, {name}"), |bench| {
            bench.iter(|| decide(black_box(&spec), black_box(&simulation.world), black_box(simulation.now)));
        });
    }
    criterion.bench_function("parse a spec", |bench| {
        bench.iter(|| ValidSpec::parse(black_box(&office_hours())));
    });
}

criterion_group!(benches, decisions);
criterion_main!(benches);
