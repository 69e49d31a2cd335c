//! Every scenario with every blow at every write: the long run, for which `cargo test` has no time.
//!
//! `cargo run -p five-spot-scenarios --example crash_points [PART_OF_A_NAME...]`

use five_spot_scenarios::embedded::{Blow, Layout};
use five_spot_scenarios::{Needs, Scenario, all, crashes};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |scenario: &Scenario| {
        scenario.needs != Needs::RealClusterApi
            && (wanted.is_empty() || wanted.iter().any(|part| scenario.name.contains(part.as_str())))
    };
    let waiting: Mutex<Vec<Scenario>> = Mutex::new(all().into_iter().filter(is_wanted).rev().collect());
    let (begun, totals) = (Instant::now(), Mutex::new((0, 0)));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = waiting.lock().expect("nobody panics with it").pop() else { break };
                    let (tried, failed) = try_scenario(&scenario);
                    let mut totals = totals.lock().expect("nobody panics with it");
                    *totals = (totals.0 + tried, totals.1 + failed);
                }
            });
        }
    });
    let (tried, failed) = *totals.lock().expect("nobody panics with it");
    println!("{tried} crash points, {failed} failed, {:.0} s", begun.elapsed().as_secs_f64());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn try_scenario(scenario: &Scenario) -> (usize, usize) {
    let begun = Instant::now();
    match crashes::try_all(scenario, Layout::TwoClusters, &Blow::ALL) {
        Err(error) => {
            println!("{:<40} not even undisturbed: {error:?}", scenario.name);
            (0, 1)
        }
        Ok(report) => {
            let (tried, failed) = (report.tried, report.failures.len());
            let seconds = begun.elapsed().as_secs_f64();
            println!("{:<40} {tried:>4} points, {failed} failed, {seconds:.0} s", scenario.name);
            for failure in report.failures {
                println!("  {failure}\n");
            }
            (tried, failed)
        }
    }
}
