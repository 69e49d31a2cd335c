//! An exhaustive walk: from a new object, everything that people, machines and crashes can do to it in
//! any order, up to a number of disturbances. In every state that can be reached the safety rules hold,
//! and from every one of them an undisturbed run comes to rest where the spec wants the object to be.

use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::{NodeTaint, OverrideState, Phase, TaintEffect};
use five_spot_core::action::Action;
use five_spot_core::claim::{Claim, ObjectName};
use five_spot_core::world::{NodeFact, Readiness, Slot};
use five_spot_core::{Evidence, MachineIdentity};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of disturbances on one path. Two covers every ordered pair.
const DISTURBANCES: u32 = 2;

/// A disturbance in addition to the normal work of the controller and the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    KillSwitch,
    Enabled,
    OverrideUp,
    SpecChange,
    DeleteObject,
    DeleteMachine,
    DeleteInfrastructure,
    Reclaim,
    NodeLost,
    Budget,
    ProviderStops,
    ForeignTaint,
    /// Another object claims the physical machine, or releases it.
    OtherClaims,
    /// Someone deletes the Lease of the claim.
    ClaimDeleted,
    /// The controller dies after this many actions of its next decision.
    Crash(usize),
    /// The clock moves on to the next thing that time alone brings about.
    Later,
}

const ALL: [Disturbance; 18] = [
    Disturbance::KillSwitch,
    Disturbance::Enabled,
    Disturbance::OverrideUp,
    Disturbance::SpecChange,
    Disturbance::DeleteObject,
    Disturbance::DeleteMachine,
    Disturbance::DeleteInfrastructure,
    Disturbance::Reclaim,
    Disturbance::NodeLost,
    Disturbance::Budget,
    Disturbance::ProviderStops,
    Disturbance::ForeignTaint,
    Disturbance::OtherClaims,
    Disturbance::ClaimDeleted,
    Disturbance::Crash(0),
    Disturbance::Crash(1),
    Disturbance::Crash(2),
    Disturbance::Later,
];

/// Disturbs; false if there is nothing to disturb.
fn disturb(simulation: &mut Simulation, disturbance: Disturbance) -> bool {
    match disturbance {
        Disturbance::KillSwitch => simulation.edit(|spec| spec.kill_switch = !spec.kill_switch),
        Disturbance::Enabled => simulation.edit(|spec| spec.schedule.enabled = !spec.schedule.enabled),
        Disturbance::OverrideUp => simulation.overrule(OverrideState::Up, "2026-11-16T19:00:00Z"),
        Disturbance::SpecChange => {
            simulation.edit(|spec| spec.machine_template.version = Some("v1.36.4".to_owned()));
        }
        Disturbance::DeleteObject if simulation.world.object.deletion.is_none() => simulation.delete_object(),
        Disturbance::DeleteMachine => match &mut simulation.world.machine {
            Slot::Ours(machine) if !machine.terminating => machine.terminating = true,
            Slot::Ours(_) | Slot::Absent | Slot::Foreign { .. } | Slot::Unknown => return false,
        },
        Disturbance::DeleteInfrastructure => match &mut simulation.world.infrastructure {
            Slot::Ours(object) if !object.terminating => object.terminating = true,
            Slot::Ours(_) | Slot::Absent | Slot::Foreign { .. } | Slot::Unknown => return false,
        },
        Disturbance::Reclaim if simulation.world.node.found().is_some() => simulation.ask_for_reclaim(),
        Disturbance::NodeLost => match &mut simulation.world.node {
            NodeFact::Found(node) => node.readiness = Readiness::Unreachable,
            NodeFact::NotYet
            | NodeFact::Gone
            | NodeFact::Unknown
            | NodeFact::Renamed(_)
            | NodeFact::Mismatch { .. } => {
                return false;
            }
        },
        Disturbance::Budget => simulation.budget_blocks = !simulation.budget_blocks,
        Disturbance::ProviderStops => simulation.provider_works = !simulation.provider_works,
        Disturbance::ForeignTaint => return taint_by_hand(simulation),
        Disturbance::OtherClaims => match simulation.world.claims.current {
            Claim::Free { .. } => simulation.world.claims.current = Claim::Taken { holder: other_object() },
            Claim::Taken { .. } => simulation.world.claims.current = simulation.free(machine(simulation)),
            Claim::Held(_) | Claim::Abandoned(_) | Claim::NotNeeded | Claim::Unprotected | Claim::Unknown => {
                return false;
            }
        },
        Disturbance::ClaimDeleted => match simulation.world.claims.current {
            Claim::Held(_) => simulation.world.claims.current = simulation.free(machine(simulation)),
            Claim::Free { .. }
            | Claim::Taken { .. }
            | Claim::Abandoned(_)
            | Claim::NotNeeded
            | Claim::Unprotected
            | Claim::Unknown => return false,
        },
        Disturbance::Crash(actions) => {
            // Crashing after the last action is no different from not crashing.
            if simulation.decide().actions.len() <= actions {
                return false;
            }
            simulation.reconcile_until(actions);
        }
        Disturbance::Later => return later(simulation),
        Disturbance::DeleteObject | Disturbance::Reclaim => return false,
    }
    true
}

fn other_object() -> ObjectName {
    ObjectName { namespace: "other".to_owned(), name: "night".to_owned() }
}

fn machine(simulation: &Simulation) -> MachineIdentity {
    MachineIdentity::of(&simulation.spec).expect("the spec names the machine")
}

/// Returns true if this object holds the physical machine, or its Machine exists already: nothing else may create anything.
fn may_create(simulation: &Simulation, before: &[Action]) -> bool {
    let world = &simulation.world;
    matches!(world.claims.current, Claim::Held(_))
        || before.iter().any(|action| matches!(action, Action::Claim { .. }))
        || world.machine.ours().is_some()
}

/// Taints the node with what the spec wants too, where it is not there yet, and with something else.
fn taint_by_hand(simulation: &mut Simulation) -> bool {
    let Some(node) = simulation.world.node.found() else {
        return false;
    };
    let missing = |key: &str| !node.taints.iter().any(|taint| taint.key == key);
    let keys: Vec<&str> = ["ours", "theirs"].into_iter().filter(|key| missing(key)).collect();
    for key in &keys {
        simulation.taint_by_hand(key);
    }
    !keys.is_empty()
}

/// Moves the clock to the next wake-up or the next pod that leaves.
fn later(simulation: &mut Simulation) -> bool {
    let pods = simulation.pods.iter().filter_map(|pod| pod.terminating).map(|termination| termination.until);
    let next = pods.chain(simulation.decide().wake_at).filter(|next| *next > simulation.now).min();
    let moved = next.is_some();
    simulation.now = next.unwrap_or(simulation.now);
    moved
}

/// The identity of a state: everything that can make a difference later.
fn key(simulation: &Simulation) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!(
        "{:?}{:?}{:?}{}{}{}{}{}",
        simulation.world,
        simulation.spec,
        simulation.pods,
        simulation.now,
        simulation.budget_blocks,
        simulation.provider_works,
        simulation.object_gone,
        simulation.watching_pods
    )
    .hash(&mut hasher);
    hasher.finish()
}

/// Checks the rules that hold for every decision.
fn check_decision(simulation: &Simulation, path: &[String]) {
    let decision = simulation.decide();
    let world = &simulation.world;
    let handling_at_once =
        simulation.spec.kill_switch || !world.status.reclaims.iter().all(|r| r.finished_at.is_some());
    let reclaim_asked = world.node.found().is_some_and(|node| node.reclaim.is_some());
    for (place, action) in decision.actions.iter().enumerate() {
        let allowed = match action {
            Action::DeleteBootstrap { .. } | Action::DeleteInfrastructure { .. } => {
                world.machine.ours().is_none()
            }
            Action::ApplyBootstrap { .. } | Action::ApplyInfrastructure { .. } | Action::ApplyMachine => {
                world.object.deletion.is_none()
                    && !simulation.spec.kill_switch
                    && world.machine.ours().is_none_or(|machine| !machine.terminating)
                    && (world.object.has_finalizer || decision.actions[0] == Action::AddFinalizer)
                    && may_create(simulation, &decision.actions[..place])
            }
            Action::Claim { .. } => {
                matches!(world.claims.current, Claim::Free { .. }) && world.object.deletion.is_none()
            }
            Action::Release { .. } => {
                world.machine.ours().is_none()
                    && world.infrastructure.ours().is_none()
                    && decision.evidence == Evidence::Confirmed
            }
            Action::Evict { pod } => {
                let view = simulation.pods.iter().find(|view| view.id == *pod);
                !handling_at_once && view.is_none_or(|view| !view.mirror && !view.daemon_set)
            }
            Action::DeletePod { pod, .. } => {
                let view = simulation.pods.iter().find(|view| view.id == *pod);
                view.is_none_or(|view| !view.mirror && !view.daemon_set)
                    && (reclaim_asked || !decision.status.reclaims.is_empty())
            }
            Action::Uncordon { .. } => world.node.found().is_some_and(|node| node.cordoned_by_us),
            Action::RemoveFinalizer => {
                let waited = world.object.deletion.is_some_and(|deletion| {
                    simulation.now.duration_since(deletion.since) >= world.policy.finalizer_cleanup_timeout
                });
                let empty = world.machine.ours().is_none()
                    && world.bootstrap.ours().is_none()
                    && world.infrastructure.ours().is_none();
                world.object.deletion.is_some() && (empty || waited)
            }
            Action::PatchTaints { taints, .. } => world
                .node
                .found()
                .is_some_and(|node| foreign(&node.taints).iter().all(|taint| taints.contains(taint))),
            Action::AddFinalizer => world.object.deletion.is_none(),
            Action::DisableSchedule => {
                world.object.deletion.is_none() && !decision.status.reclaims.is_empty()
            }
            Action::DeleteMachine { .. }
            | Action::ExcludeDrain { .. }
            | Action::Cordon { .. }
            | Action::LabelForAgent { .. }
            | Action::ApplyAgentConfig { .. }
            | Action::RearmAgent { .. }
            | Action::DeleteAgentConfig { .. }
            | Action::ClearReclaimRequest { .. }
            | Action::Publish(_) => true,
        };
        assert!(allowed, "{action} after:\n{}\nin {world:#?}", path.join("\n"));
    }
}

fn foreign(taints: &[NodeTaint]) -> Vec<&NodeTaint> {
    taints.iter().filter(|taint| taint.value.is_none()).collect()
}

/// An undisturbed run, in which everything that was broken works again, ends where the spec wants it.
fn check_rest(start: &Simulation, good: &mut HashSet<u64>, path: &[String]) {
    let mut simulation = start.clone();
    simulation.provider_works = true;
    if matches!(simulation.world.claims.current, Claim::Taken { .. }) {
        simulation.world.claims.current = simulation.free(machine(&simulation));
    }
    simulation.budget_blocks = false;
    if let NodeFact::Found(node) = &mut simulation.world.node {
        node.readiness = Readiness::Ready;
    }
    let mut passed = Vec::new();
    for _ in 0..200 {
        let here = key(&simulation);
        if good.contains(&here) {
            good.extend(passed);
            return;
        }
        passed.push(here);
        let moved = simulation.reconcile() || simulation.machinery();
        if moved {
            continue;
        }
        if at_rest(&simulation) {
            good.extend(passed);
            return;
        }
        assert!(later(&mut simulation), "stuck after:\n{}\nwith {:#?}", path.join("\n"), simulation.world);
    }
    panic!("never at rest after:\n{}\nwith {:#?}\n{}", path.join("\n"), simulation.world, simulation.tail());
}

fn at_rest(simulation: &Simulation) -> bool {
    if simulation.object_gone {
        return true;
    }
    let world = &simulation.world;
    let nothing = world.machine == Slot::Absent
        && world.bootstrap == Slot::Absent
        && world.infrastructure == Slot::Absent;
    let holds = matches!(world.claims.current, Claim::Held(_));
    match simulation.phase() {
        Phase::Active if !holds => false,
        Phase::Active => world.node.found().is_some_and(|node| {
            node.readiness == Readiness::Ready && !node.cordoned_by_us && node.reclaim.is_none()
        }),
        Phase::Inactive | Phase::Disabled | Phase::Terminated => nothing && !holds,
        Phase::Pending | Phase::ShuttingDown | Phase::EmergencyRemove | Phase::Error => false,
    }
}

#[test]
fn nothing_is_orphaned_or_doubled_and_every_run_ends() {
    let mut spec = office_hours();
    spec.node_taints = vec![NodeTaint {
        key: "ours".to_owned(),
        value: Some("1".to_owned()),
        effect: TaintEffect::NoSchedule,
    }];
    spec.kill_if_commands = vec!["java".to_owned()];
    spec.machine_identity = Some("desk-7".to_owned());
    let mut seen = HashSet::new();
    let mut good = HashSet::new();
    let mut phases: BTreeMap<Phase, u32> = BTreeMap::new();
    let mut queue = VecDeque::new();
    for start in ["2026-11-16T08:00:00Z", "2026-11-16T10:00:00Z", "2026-11-16T17:59:00Z"] {
        let mut simulation = Simulation::new(spec.clone());
        simulation.now = time(start);
        simulation.world.claims.current = simulation.free(machine(&simulation));
        queue.push_back((simulation, DISTURBANCES, vec![start.to_owned()]));
    }
    while let Some((simulation, left, path)) = queue.pop_front() {
        if !seen.insert((key(&simulation), left)) {
            continue;
        }
        if !simulation.object_gone {
            check_decision(&simulation, &path);
            phases
                .entry(simulation.decide().status.phase.expect("a phase"))
                .and_modify(|n| *n += 1)
                .or_insert(1);
        }
        check_rest(&simulation, &mut good, &path);
        let mut go_on = |name: String, left: u32, step: &dyn Fn(&mut Simulation) -> bool| {
            let mut next = simulation.clone();
            if step(&mut next) {
                next.log.clear();
                next.events.clear();
                let path = path.iter().cloned().chain([name]).collect();
                queue.push_back((next, left, path));
            }
        };
        go_on("reconcile".to_owned(), left, &Simulation::reconcile);
        go_on("machinery".to_owned(), left, &Simulation::machinery);
        if left > 0 && !simulation.object_gone {
            if simulation.pods.is_empty() && simulation.world.node.found().is_some() {
                go_on("pods start".to_owned(), left - 1, &|next| {
                    next.start_pods(&["web"]);
                    true
                });
            }
            for disturbance in ALL {
                go_on(format!("{disturbance:?}"), left - 1, &|next| disturb(next, disturbance));
            }
        }
    }
    println!("{} states, {} of them with phases {phases:?}", seen.len(), phases.values().sum::<u32>());
    for phase in Phase::ALL {
        assert!(phases.contains_key(&phase), "the walk never comes to {phase}");
    }
    assert!(seen.len() > 5_000, "only {} states", seen.len());
}
