//! Every scenario on the sandbox in bad weather: stale reads, broken watches, storms of errors, clocks that jump.

use five_spot_scenarios::embedded::Layout;
use five_spot_scenarios::weather::{self, Fair};
use five_spot_scenarios::{Needs, Scenario, all};
use jiff::SignedDuration;
use libtest_mimic::{Arguments, Failed, Trial};
use std::time::Duration;

/// Scenarios in which every watch goes wrong in every way.
const WITH_BROKEN_WATCHES: [&str; 3] = ["window_opens", "window_closes_and_drains", "deleted_while_active"];

/// Somebody else's object has just been made under a name of ours: that it is there can only be known from a read that is
/// true, which is what a real server promises for one that names no version.
const NOT_STALE: [&str; 1] = ["foreign_machine_has_our_name"];

/// More watches than any of them starts.
const WATCHES: u64 = 14;

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    let trials = all().into_iter().flat_map(trials).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials(scenario: Scenario) -> Vec<Trial> {
    let mut trials = Vec::new();
    match scenario.needs {
        Needs::Anything | Needs::TwoClusters | Needs::VirtualTime => {}
        Needs::RealClusterApi => return trials,
    }
    if !NOT_STALE.contains(&scenario.name) {
        trials.push(trial(format!("stale::{}", scenario.name), move || {
            let fair = Fair::play(scenario, Layout::TwoClusters)?;
            [1, 5].into_iter().try_for_each(|lag| weather::stale_reads(&fair, lag))
        }));
    }
    if WITH_BROKEN_WATCHES.contains(&scenario.name) {
        trials.extend((0..WATCHES).map(|watch| {
            trial(format!("watches::{}::{watch}", scenario.name), move || every_fault_of(&scenario, watch))
        }));
    }
    if scenario.name == "window_opens" {
        trials.extend(storms(scenario));
        trials.extend(jumps(scenario));
    }
    trials
}

fn every_fault_of(scenario: &Scenario, watch: u64) -> anyhow::Result<()> {
    let fair = Fair::play(*scenario, Layout::TwoClusters)?;
    for fault in weather::watch_faults(watch % 4) {
        weather::watch_fails(&fair, watch, fault).map_err(|error| error.context(format!("{fault:?}")))?;
    }
    Ok(())
}

fn storms(scenario: Scenario) -> Vec<Trial> {
    let rates = [10, 100, 500, 1000];
    let faults = weather::request_faults();
    faults
        .into_iter()
        .flat_map(|(name, fault)| rates.map(|rate| (name, fault.clone(), rate)))
        .map(|(name, fault, rate)| {
            trial(format!("storms::{name}::{rate}"), move || {
                weather::storm(&Fair::play(scenario, Layout::TwoClusters)?, rate, fault, rate)
            })
        })
        .collect()
}

/// Steps that a clock takes, for two minutes and for good, around the opening of the window.
fn jumps(scenario: Scenario) -> Vec<Trial> {
    let steps = [1_i64, 60, 3_600, 86_400];
    let moments = [30_u64, 39, 41, 60];
    let both_ways = steps.into_iter().flat_map(|step| [step, -step]);
    both_ways
        .flat_map(|by| moments.map(|after| (by, after)))
        .map(|(by, after)| {
            trial(format!("jumps::{by}::{after}"), move || {
                let (by, after) = (SignedDuration::from_secs(by), Duration::from_secs(after));
                for lasting in [Duration::from_mins(2), Duration::MAX] {
                    weather::clock_jumps(&scenario, Layout::TwoClusters, after, lasting, by)?;
                }
                Ok(())
            })
        })
        .collect()
}

fn trial(name: String, run: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || run().map_err(|error| Failed::from(format!("{error:?}"))))
}
