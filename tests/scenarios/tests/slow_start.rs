//! The order in which objects become known at the start is arbitrary: a Machine may precede its `ScheduledMachine`.

use five_spot_apiserver::faults::{FaultRule, InjectedFault, RequestKind, Trigger};
use five_spot_scenarios::all;
use five_spot_scenarios::in_memory::{Disturbance, Layout, run};
use std::time::Duration;

/// An object that was not known yet was assumed to be gone, and events of its Node and pods no longer reached
/// it.
#[test]
fn a_drain_goes_on_although_the_objects_were_listed_last() {
    let scenarios = all();
    let scenario =
        scenarios.iter().find(|scenario| scenario.name == "killed_in_mid_drain").expect("it is told");
    let late = FaultRule {
        kind: RequestKind::Read,
        path: "/scheduledmachines".to_owned(),
        trigger: Trigger::PerMille(1000),
        fault: InjectedFault::Delay(Duration::from_millis(500)),
    };
    let lasts = |disturbance: &Disturbance| {
        let run = run(scenario, Layout::TwoClusters, disturbance).expect("it ends as it should");
        run.writes.last().expect("there were writes").time.duration_since(run.began)
    };
    let (usually, now) = (lasts(&Disturbance::default()), lasts(&Disturbance::rule(late)));
    // An object that has missed events is compared with the server after five minutes.
    assert!(now < usually * 3, "it took {now} instead of {usually}");
}
