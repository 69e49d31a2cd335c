//! Timers during a pause.

use super::at_work;
use crate::simulation::{Simulation, office_hours};
use five_spot_api::Phase;
use five_spot_core::world::PauseLevel;

#[test]
fn the_time_to_join_stands_still_during_a_pause() {
    let mut simulation = Simulation::new(office_hours());
    simulation.nodes_join = false;
    simulation.advance_to("2026-11-16T09:05:00Z");
    simulation.take_log();
    simulation.world.cluster.as_mut().unwrap().paused = true;
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert_eq!(simulation.phase(), Phase::Active, "Cluster API could not let the node join");
    simulation.world.cluster.as_mut().unwrap().paused = false;
    simulation.advance_to("2026-11-16T11:19:59Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.advance_to("2026-11-16T11:20:00Z");
    assert_eq!(simulation.condition("Ready"), ("False", "JoinFailed"));
}

#[test]
fn the_drain_deadline_stands_still_during_a_pause() {
    for level in [PauseLevel::Ordinary, PauseLevel::All] {
        let mut simulation = at_work();
        simulation.start_pods(&["web"]);
        simulation.budget_blocks = true;
        simulation.provider_works = false;
        simulation.force_on_timeout();
        simulation.edit(|spec| spec.schedule.enabled = false);
        simulation.advance_to("2026-11-16T10:01:00Z");
        simulation.take_log();
        simulation.world.object.paused = Some(level);
        simulation.advance_to("2026-11-16T11:00:00Z");
        assert_eq!(simulation.take_log(), [""; 0]);
        assert_eq!(simulation.phase(), Phase::ShuttingDown);
        simulation.world.object.paused = None;
        simulation.advance_to("2026-11-16T11:04:59Z");
        assert!(!simulation.machine().terminating, "nobody loses pods because a pause ended");
        simulation.advance_to("2026-11-16T11:05:00Z");
        assert!(simulation.machine().terminating);
    }
}
