//! Faults that a controller need not repair: the printed fix alone makes the finding disappear.

use super::{CRD, Step, forget_priority, installation, without_machine};
use crate::doctor::tests::fixes::command;
use crate::doctor::tests::fixture::{DoctorFixture, START, fleet, machine};
use five_spot_diagnose::doctor::{Finding, FindingId};
use serde_json::json;

async fn found(world: &DoctorFixture, id: FindingId) -> Option<Finding> {
    world.report().await.findings.into_iter().find(|finding| finding.id == id)
}

#[tokio::test(start_paused = true)]
async fn the_shipped_crd_replaces_an_old_or_absent_one() {
    let absent = without_machine().into_iter().chain([Step::Delete(CRD)]).collect();
    let worlds = [
        (FindingId::CrdOutdated, vec![Step::Redefine(CRD, forget_priority)]),
        (FindingId::CrdMissing, absent),
    ];
    for (id, steps) in worlds {
        let world = installation().await;
        for step in steps {
            world.carry_out(step).await;
        }
        let finding = found(&world, id).await.unwrap_or_else(|| panic!("{id}"));
        world.run(command(&finding, "kubectl apply")).await;
        assert_eq!(found(&world, id).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_time_zone_is_set_to_the_usual_one() {
    let schedule = |zone: &str| json!({"schedule": {"daysOfWeek": ["mon-fri"], "timezone": zone}});
    let mut objects: Vec<_> =
        (0..5).map(|number| machine(&format!("berlin-{number}"), &schedule("Europe/Berlin"))).collect();
    objects.push(machine("desk", &schedule("UTC")));
    let world = DoctorFixture::without_controller(START, &fleet(objects)).await;
    let finding = found(&world, FindingId::TimezoneSuspect).await.expect("a finding");
    assert_eq!(finding.object.name, "desk");
    world.run(command(&finding, "kubectl patch")).await;
    assert_eq!(found(&world, FindingId::TimezoneSuspect).await, None);
}
