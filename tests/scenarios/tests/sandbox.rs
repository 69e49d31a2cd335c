//! Every scenario on the sandbox, undisturbed and with blows at every write.

use five_spot_scenarios::embedded::{Layout, play};
use five_spot_scenarios::{Needs, Scenario, all, crashes};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    }
    let arguments = Arguments::from_args();
    let trials = all().into_iter().flat_map(trials).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Scenarios that are tried with blows at every write.
const WITH_CRASHES: [&str; 3] = ["window_opens", "window_closes_and_drains", "deleted_while_active"];

fn trials(scenario: Scenario) -> Vec<Trial> {
    let layouts = match scenario.needs {
        Needs::TwoClusters => vec![("two_clusters", Layout::TwoClusters)],
        Needs::Anything | Needs::VirtualTime => {
            vec![("one_cluster", Layout::OneCluster), ("two_clusters", Layout::TwoClusters)]
        }
    };
    let mut trials: Vec<Trial> = layouts
        .into_iter()
        .map(|(name, layout)| {
            Trial::test(format!("{name}::{}", scenario.name), move || {
                play(&scenario, layout, None).map(drop).map_err(|error| told(&error))
            })
        })
        .collect();
    if WITH_CRASHES.contains(&scenario.name) {
        trials.push(Trial::test(format!("crashes::{}", scenario.name), move || {
            let report = crashes::try_all(&scenario, Layout::TwoClusters).map_err(|error| told(&error))?;
            println!("{}: {} crash points", scenario.name, report.tried);
            if report.failures.is_empty() {
                return Ok(());
            }
            let count = report.failures.len();
            Err(Failed::from(format!(
                "{count} of {} points:\n{}",
                report.tried,
                report.failures.join("\n\n")
            )))
        }));
    }
    trials
}

fn told(error: &anyhow::Error) -> Failed {
    Failed::from(format!("{error:?}"))
}
