//! Claims on physical machines: properties of every decision, and the decisions about one machine of several objects.

use crate::simulation::{Simulation, office_hours, time};
use crate::world_properties::{decision, moment, second, spec, world};
use five_spot_api::Phase;
use five_spot_core::action::Action;
use five_spot_core::claim::{Claim, HeldClaim, KEPT_FOR_FIRST, MachineClaims, ObjectName, Waiter};
use five_spot_core::world::{Slot, World};
use five_spot_core::{Evidence, MachineIdentity};
use proptest::option;
use proptest::prelude::*;

fn identity(name: &str) -> MachineIdentity {
    let mut spec = office_hours();
    spec.machine_identity = Some(name.to_owned());
    MachineIdentity::of(&spec).expect("an identity")
}

fn held(name: &str) -> impl Strategy<Value = HeldClaim> + use<> {
    let machine = identity(name);
    any::<bool>().prop_map(move |is_current| HeldClaim { machine, version: "7".into(), is_current })
}

fn other() -> impl Strategy<Value = ObjectName> {
    ("team|other", "[xy]").prop_map(|(namespace, name)| ObjectName { namespace, name })
}

prop_compose! {
    fn waiter()(object in other(), priority in 0..=100_u8, created_at in second()) -> Waiter {
        Waiter { object, priority, created_at }
    }
}

fn claim() -> impl Strategy<Value = Claim> {
    let free = (prop::collection::vec(waiter(), 0..3), second()).prop_map(|(waiters, since)| Claim::Free {
        machine: identity("desk-7"),
        waiters,
        since,
    });
    prop_oneof![
        2 => Just(Claim::NotNeeded),
        1 => Just(Claim::Unprotected),
        1 => Just(Claim::Unknown),
        3 => free,
        3 => held("desk-7").prop_map(Claim::Held),
        1 => held("desk-7").prop_map(Claim::Abandoned),
        2 => other().prop_map(|holder| Claim::Taken { holder }),
    ]
}

prop_compose! {
    pub(crate) fn machine_claims()(
        current in claim(),
        former in prop::collection::vec(held("desk-6"), 0..2),
        also_lent_by in option::weighted(0.2, other()),
    ) -> MachineClaims {
        MachineClaims { current, former, also_lent_by }
    }
}

fn creates(action: &Action) -> bool {
    matches!(
        action,
        Action::ApplyBootstrap { .. } | Action::ApplyInfrastructure { .. } | Action::ApplyMachine
    )
}

fn is_gone(world: &World) -> bool {
    matches!(world.machine, Slot::Absent | Slot::Foreign { .. })
        && matches!(world.infrastructure, Slot::Absent | Slot::Foreign { .. })
}

proptest! {
    /// Nothing is created for a machine that another object has, or that is not claimed first.
    #[test]
    fn nothing_is_created_without_a_claim(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        let first = decision.actions.iter().position(creates);
        let Some(first) = first.filter(|_| world.machine.ours().is_none()) else { return Ok(()) };
        let claims = decision.actions[..first].iter().any(|action| matches!(action, Action::Claim { .. }));
        let permitted = match &world.claims.current {
            Claim::NotNeeded | Claim::Unprotected => true,
            Claim::Held(claim) => (claim.is_current || claims) && world.claims.also_lent_by.is_none(),
            Claim::Free { .. } | Claim::Abandoned(_) => claims && world.claims.also_lent_by.is_none(),
            Claim::Unknown | Claim::Taken { .. } => false,
        };
        prop_assert!(permitted, "{:?}", decision.actions);
        prop_assert_eq!(decision.evidence, Evidence::Confirmed);
    }

    /// A claim is released only when nothing of the machine is left, on confirmed facts, and always then.
    #[test]
    fn a_claim_is_released_when_the_machine_is_gone(spec in spec(), world in world(), now in moment()) {
        let decision = decision(&spec, &world, now);
        let releases = decision.actions.iter().any(|action| matches!(action, Action::Release { .. }));
        if releases {
            prop_assert!(is_gone(&world));
            prop_assert_eq!(decision.evidence, Evidence::Confirmed);
        }
        let holds = matches!(world.claims.current, Claim::Held(_)) || !world.claims.former.is_empty();
        if is_gone(&world) && holds && decision.actions.is_empty() {
            let is_paused = decision.status.conditions.iter().any(|one| one.type_ == "Paused" && one.status == "True");
            let has_no_finalizer = world.object.deletion.is_some() && !world.object.has_finalizer;
            prop_assert!(is_paused || has_no_finalizer || matches!(decision.status.phase, Some(Phase::Error)),
                "{:?} {:?}", decision.status.phase, decision.actions);
        }
    }

    /// No claim changes what an emergency does, nor how sure it must be.
    #[test]
    fn no_claim_holds_up_an_emergency(spec in spec(), world in world(), now in moment()) {
        let with = decision(&spec, &world, now);
        let mut free = world.clone();
        free.claims = MachineClaims::default();
        let without = decision(&spec, &free, now);
        if without.evidence == Evidence::BestEffort {
            prop_assert_eq!(with.evidence, without.evidence);
            prop_assert_eq!(&with.actions, &without.actions);
        }
        let deletes = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::DeleteMachine { .. }));
        prop_assert_eq!(deletes(&with.actions), deletes(&without.actions));
    }
}

/// An object in its window with a machine that `claim` says something about.
fn open(claim: impl Fn(MachineIdentity) -> Claim) -> Simulation {
    let mut spec = office_hours();
    spec.machine_identity = Some("desk-7".to_owned());
    let mut simulation = Simulation::new(spec);
    simulation.world.claims.current = claim(identity("desk-7"));
    simulation.now = time("2026-11-16T09:00:00Z");
    simulation
}

fn name(namespace: &str, name: &str) -> ObjectName {
    ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn free(since: &str, waiters: Vec<Waiter>) -> impl Fn(MachineIdentity) -> Claim {
    let since = time(since);
    move |machine| Claim::Free { machine, waiters: waiters.clone(), since }
}

#[test]
fn a_free_machine_is_claimed_before_anything_is_created() {
    let mut simulation = open(free("2026-11-16T08:00:00Z", Vec::new()));
    simulation.settle();
    let log = simulation.take_log();
    let expected = [
        "add the finalizer",
        "claim the physical machine",
        "apply the bootstrap object",
        "apply the infrastructure object",
        "apply the Machine",
    ];
    assert_eq!(log[..5], expected);
    simulation.advance_to("2026-11-16T18:30:00Z");
    assert_eq!(
        simulation.take_log().last().map(String::as_str),
        Some("release the claim on the physical machine")
    );
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn a_machine_in_use_is_waited_for_by_name() {
    let mut simulation = open(|_| Claim::Taken { holder: name("night", "desk") });
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Pending);
    assert_eq!(simulation.condition("Ready"), ("False", "MachineInUse"));
    let message = simulation.world.status.message.clone().unwrap_or_default();
    assert_eq!(
        message,
        "waiting for the physical machine, which ScheduledMachine night/desk uses; the schedule is open"
    );
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    assert_eq!(simulation.take_events(), ["ScheduleActive"], "waiting its turn is no warning");
    simulation.world.claims.current = simulation.free(identity("desk-7"));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_waiter_that_goes_first_has_a_minute() {
    let first = |second: i64, priority| Waiter {
        object: name("team", "first"),
        priority,
        created_at: jiff::Timestamp::from_second(second).expect("a time"),
    };
    let mut simulation = open(free("2026-11-16T08:59:50Z", vec![first(0, 50)]));
    simulation.settle();
    assert_eq!(simulation.condition("Ready"), ("False", "MachineInUse"));
    assert!(
        simulation.world.status.message.as_ref().is_some_and(|text| text.contains("team/first gets first"))
    );
    let until = time("2026-11-16T08:59:50Z") + KEPT_FOR_FIRST;
    assert_eq!(simulation.decide().wake_at, Some(until));
    simulation.advance_to("2026-11-16T09:00:50Z");
    assert_eq!(simulation.phase(), Phase::Active);
    // With a lower priority in the same namespace it does not go first.
    let mut simulation = open(free("2026-11-16T08:59:50Z", vec![first(0, 49)]));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn a_double_loan_is_reported_and_nothing_is_torn_down() {
    let mut simulation = open(free("2026-11-16T08:00:00Z", Vec::new()));
    simulation.settle();
    simulation.take_events();
    simulation.world.claims.current = Claim::Taken { holder: name("night", "desk") };
    simulation.world.claims.also_lent_by = Some(name("night", "desk"));
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "MachineInUse"));
    assert_eq!(simulation.condition("Ready"), ("True", "NodeReady"));
    assert_eq!(simulation.take_events(), ["MachineInUse"]);
    simulation.settle();
    assert_eq!(simulation.take_events(), Vec::<String>::new(), "once");
    simulation.world.claims.also_lent_by = None;
    simulation.settle();
    assert_eq!(simulation.condition("ReferencesValid"), ("True", "Resolved"));
}

#[test]
fn a_machine_lent_without_a_claim_is_claimed_and_not_lent_again() {
    let mut lent = open(free("2026-11-16T08:00:00Z", Vec::new()));
    lent.settle();
    lent.world.claims.current = lent.free(identity("desk-7"));
    lent.take_log();
    lent.settle();
    assert_eq!(lent.take_log(), ["claim the physical machine"]);
    let mut other = open(free("2026-11-16T08:00:00Z", Vec::new()));
    other.world.claims.also_lent_by = Some(name("night", "desk"));
    other.settle();
    assert_eq!(other.condition("Ready"), ("False", "MachineInUse"));
    assert_eq!(other.take_log(), ["add the finalizer"]);
}

#[test]
fn a_claim_on_another_machine_goes_when_the_old_machine_is_gone() {
    let mut simulation = open(free("2026-11-16T08:00:00Z", Vec::new()));
    simulation.settle();
    let old = HeldClaim { machine: identity("desk-7"), version: "1".into(), is_current: true };
    simulation.edit(|spec| spec.machine_identity = Some("desk-8".to_owned()));
    simulation.world.claims.former = vec![old];
    simulation.world.claims.current = simulation.free(identity("desk-8"));
    simulation.take_log();
    simulation.settle();
    let log = simulation.take_log();
    let place =
        |text: &str| log.iter().position(|line| line == text).unwrap_or_else(|| panic!("{text}: {log:?}"));
    let released = place("release the claim on the physical machine");
    assert!(place("delete the Machine") < released);
    assert!(released < place("claim the physical machine"), "a crash in between must not keep both");
    assert!(place("claim the physical machine") < place("apply the Machine"));
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.world.claims.former, []);
}
