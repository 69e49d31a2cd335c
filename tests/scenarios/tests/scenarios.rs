//! Every scenario on the in-memory environment, undisturbed: in every layout at full size, otherwise in one of them in turn.

use five_spot_scenarios::faults::layouts;
use five_spot_scenarios::in_memory::{Disturbance, Layout, run};
use five_spot_scenarios::{Scenario, Size, all};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    let trials = all().into_iter().enumerate().flat_map(trials).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials((number, scenario): (usize, Scenario)) -> Vec<Trial> {
    let trial = |layout: &Layout| {
        let (name, layout) = (format!("{layout}::{}", scenario.name), *layout);
        Trial::test(name, move || {
            run(&scenario, layout, &Disturbance::default()).map(drop).map_err(|error| failed(&error))
        })
    };
    let usual = layouts(&scenario);
    let old = usual.iter().take(1).map(|_| &Layout::OldClusterApi);
    let layouts: Vec<&Layout> = usual.iter().chain(old).collect();
    match Size::of_process() {
        Size::Full => layouts.into_iter().map(trial).collect(),
        Size::Sample => layouts.get(number % layouts.len().max(1)).into_iter().copied().map(trial).collect(),
    }
}

fn failed(error: &anyhow::Error) -> Failed {
    Failed::from(format!("{error:?}"))
}
