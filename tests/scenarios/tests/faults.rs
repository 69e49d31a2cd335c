//! A sample of everything that can go wrong in every scenario. All of it is what `cargo xtask faults` tries.

use five_spot_scenarios::faults::{Fair, Kind, Sample, cases, layouts};
use five_spot_scenarios::{Scenario, all};
use libtest_mimic::{Arguments, Failed, Trial};

/// How many cases of each kind a scenario gets.
const fn size(kind: Kind) -> usize {
    match kind {
        Kind::Crashes | Kind::Watches => 4,
        Kind::Storms => 2,
        Kind::Pairs | Kind::Stale | Kind::Clocks | Kind::Orderings | Kind::Neighbours => 1,
    }
}

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, all().into_iter().enumerate().filter_map(trial).collect()).exit();
}

/// Every other scenario in the other layout, if it can be played in both.
fn trial((number, scenario): (usize, Scenario)) -> Option<Trial> {
    let playable = layouts(&scenario);
    let layout = *playable.get(number % playable.len().max(1))?;
    Some(Trial::test(scenario.name, move || {
        let told = |error: anyhow::Error| Failed::from(format!("{error:?}"));
        let fair = Fair::play(scenario, layout).map_err(told)?;
        for kind in Kind::ALL {
            let sample = Sample { size: Some(size(kind)), seed: number as u64 };
            for case in cases(kind, &fair, sample).map_err(told)? {
                let name = format!("{kind}:{}:{layout}:{}", scenario.name, case.name);
                case.try_on(&fair).map_err(|error| told(error.context(name)))?;
            }
        }
        Ok(())
    }))
}
