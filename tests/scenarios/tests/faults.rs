//! A sample of all faults in every scenario. `cargo xtask faults` runs all of them.

use five_spot_scenarios::faults::{Baseline, CampaignKind, Sample, cases, layouts};
use five_spot_scenarios::{Scenario, Size, all};
use libtest_mimic::{Arguments, Failed, Trial};

/// The kinds of the default loop: each scenario gets one of them in turn.
const IN_TURN: [CampaignKind; 11] = [
    CampaignKind::Crashes,
    CampaignKind::Watches,
    CampaignKind::Pairs,
    CampaignKind::Stale,
    CampaignKind::Storms,
    CampaignKind::Crashes,
    CampaignKind::Watches,
    CampaignKind::Clocks,
    CampaignKind::Orderings,
    CampaignKind::Neighbours,
    CampaignKind::Leaders,
];

/// The number of cases of a kind for the scenario of this number. At full size every scenario gets cases of every kind.
fn size(kind: CampaignKind, number: usize, size: Size) -> usize {
    match (size, kind) {
        (Size::Full, CampaignKind::Crashes | CampaignKind::Watches | CampaignKind::Leaders) => 4,
        (Size::Full, CampaignKind::Storms) => 2,
        (
            Size::Full,
            CampaignKind::Pairs
            | CampaignKind::Stale
            | CampaignKind::Clocks
            | CampaignKind::Orderings
            | CampaignKind::Neighbours,
        ) => 1,
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
    let runnable_layouts = layouts(&scenario);
    let layout = *runnable_layouts.get(number % runnable_layouts.len().max(1))?;
    Some(Trial::test(scenario.name, move || {
        let failed = |error: anyhow::Error| Failed::from(format!("{error:?}"));
        let baseline = Baseline::run(scenario, layout).map_err(failed)?;
        for kind in CampaignKind::ALL {
            let sample = Sample { size: Some(size(kind, number, Size::of_process())), seed: number as u64 };
            for case in cases(kind, &baseline, sample).map_err(failed)? {
                let name = format!("{kind}:{}:{layout}:{}", scenario.name, case.name);
                case.try_on(&baseline).map_err(|error| failed(error.context(name)))?;
            }
        }
        Ok(())
    }))
}
