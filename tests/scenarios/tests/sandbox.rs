//! Every scenario on the sandbox, undisturbed and with blows at every write.

use five_spot_scenarios::embedded::{Blow, Disturbance, Layout, play};
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

/// Scenarios in which the controller is also let die at every write. All of them, and more blows, are in the example
/// `crash_points`, which takes its time.
const WITH_CRASHES: [&str; 3] = ["window_opens", "window_closes_and_drains", "deleted_while_active"];

fn trials(scenario: Scenario) -> Vec<Trial> {
    let layouts = match scenario.needs {
        Needs::TwoClusters => vec![("two_clusters", Layout::TwoClusters)],
        Needs::RealClusterApi => Vec::new(),
        Needs::Anything | Needs::VirtualTime => {
            vec![("one_cluster", Layout::OneCluster), ("two_clusters", Layout::TwoClusters)]
        }
    };
    let mut trials: Vec<Trial> = layouts
        .into_iter()
        .map(|(name, layout)| {
            Trial::test(format!("{name}::{}", scenario.name), move || {
                play(&scenario, layout, &Disturbance::default()).map(drop).map_err(|error| told(&error))
            })
        })
        .collect();
    if WITH_CRASHES.contains(&scenario.name) {
        // One trial for each, so that all cores have something to do.
        trials.extend(Blow::CRASHES.map(|blow| {
            let name = format!("crashes::{}::{blow:?}", scenario.name);
            Trial::test(name, move || converges(&scenario, blow))
        }));
    }
    trials
}

fn converges(scenario: &Scenario, blow: Blow) -> Result<(), Failed> {
    let report = crashes::try_all(scenario, Layout::TwoClusters, &[blow]).map_err(|error| told(&error))?;
    if report.tried == 0 {
        return Err(Failed::from("there was no write to crash at"));
    }
    if report.failures.is_empty() {
        return Ok(());
    }
    let (count, failures) = (report.failures.len(), report.failures.join("\n\n"));
    Err(Failed::from(format!("{count} of {} points:\n{failures}", report.tried)))
}

fn told(error: &anyhow::Error) -> Failed {
    Failed::from(format!("{error:?}"))
}
