//! A sample of all faults in every scenario. `cargo xtask faults` runs all of them.

use five_spot_scenarios::faults::{Baseline, Kind, Sample, cases, layouts};
use five_spot_scenarios::{Scenario, Size, all};
use libtest_mimic::{Arguments, Failed, Trial};

/// The kinds of the default loop: each scenario gets one of them in turn.
const IN_TURN: [Kind; 11] = [
    Kind::Crashes,
    Kind::Watches,
    Kind::Pairs,
    Kind::Stale,
    Kind::Storms,
    Kind::Crashes,
    Kind::Watches,
    Kind::Clocks,
    Kind::Orderings,
    Kind::Neighbours,
    Kind::Leaders,
];

/// The number of cases of a kind for the scenario of this number. At full size every scenario gets cases of every kind.
fn size(kind: Kind, number: usize, size: Size) -> usize {
    match (size, kind) {
        (Size::Full, Kind::Crashes | Kind::Watches | Kind::Leaders) => 4,
        (Size::Full, Kind::Storms) => 2,
        (Size::Full, Kind::Pairs | Kind::Stale | Kind::Clocks | Kind::Orderings | Kind::Neighbours) => 1,
        (Size::Sample, kind) => usize::from(IN_TURN[number % IN_TURN.len()] == kind),
    }
}

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, all().into_iter().enumerate().filter_map(trial).collect()).exit();
}

/// Every other scenario in the other layout, if it can be run in both.
fn trial((number, scenario): (usize, Scenario)) -> Option<Trial> {
    let playable = layouts(&scenario);
    let layout = *playable.get(number % playable.len().max(1))?;
    Some(Trial::test(scenario.name, move || {
        let failed = |error: anyhow::Error| Failed::from(format!("{error:?}"));
        let baseline = Baseline::run(scenario, layout).map_err(failed)?;
        for kind in Kind::ALL {
            let sample = Sample { size: Some(size(kind, number, Size::of_process())), seed: number as u64 };
            for case in cases(kind, &baseline, sample).map_err(failed)? {
                let name = format!("{kind}:{}:{layout}:{}", scenario.name, case.name);
                case.try_on(&baseline).map_err(|error| failed(error.context(name)))?;
            }
        }
        Ok(())
    }))
}
