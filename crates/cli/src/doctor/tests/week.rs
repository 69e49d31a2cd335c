//! False alarms are bugs: the week of the sandbox's demo, looked at every hour, has no finding above `info`. Budgets block a
//! drain in it, a machine is reclaimed, a kill switch is used, and a window is overridden, all within the first three days. The
//! rest of the week is a campaign (`cargo xtask campaign properties`).

use super::fixture::{DoctorFixture, grave};
use super::kubectl::get;
use crate::sandbox::fleet::demo;
use jiff::Timestamp;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_healthy_week_has_no_finding_above_info() {
    const START: &str = "2026-11-09T00:00:00Z";
    let start: Timestamp = START.parse().expect("a time");
    let world = DoctorFixture::new(START, demo(start)).await;
    // Some minutes after the hour, when windows have just opened and closed; and everything in between once.
    world.pass(Duration::from_mins(3)).await;
    let hours = if std::env::var_os("FIVESPOT_CAMPAIGN").is_some() { 7 * 24 } else { 3 * 24 };
    let mut agents = 0;
    for hour in 0..hours {
        let report = world.report().await;
        assert_eq!(report.checked, 7);
        let found = grave(&report);
        assert!(found.is_empty(), "hour {hour}, {}: {found:#?}", world.environment.clock.now());
        let set =
            get(&world.client, "/apis/apps/v1/namespaces/5spot-system/daemonsets/5spot-reclaim-agent").await;
        agents += set["status"]["numberReady"].as_u64().unwrap_or_default();
        world.pass(Duration::from_mins(61)).await;
    }
    assert!(agents > 15, "the agent of one machine runs in its windows: {agents} hours");
}
