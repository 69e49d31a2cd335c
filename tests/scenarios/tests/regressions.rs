//! What the long run has found, each once more and by itself.

use five_spot_sandbox::faults::Fault;
use five_spot_scenarios::embedded::{Disturbance, Layout, Run, Storm, play};
use std::time::Duration;

fn play_again(scenario: &str, disturbance: &Disturbance) -> anyhow::Result<Run> {
    let found = five_spot_scenarios::all().into_iter().find(|one| one.name == scenario);
    play(&found.expect("a scenario of that name"), Layout::TwoClusters, disturbance)
}

/// The status was written, the answer lost, the failure reported, that answer lost as well; and each time the watch told of
/// a change, upon which everything began again, a thousand times within a second.
#[test]
fn answers_that_are_lost_do_not_make_it_write_without_a_pause() -> anyhow::Result<()> {
    let storm = Storm {
        per_mille: 1000,
        fault: Fault::DropAfter,
        after: Duration::from_secs(12),
        lasting: Duration::from_mins(10),
    };
    let disturbance = Disturbance { storm: Some(storm), ..Disturbance::default() };
    let run = play_again("volumes_are_waited_for", &disturbance)?;
    assert!(run.writes.len() < 200, "{} writes", run.writes.len());
    Ok(())
}
