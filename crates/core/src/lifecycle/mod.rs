//! What should happen: [`decide`] looks at a spec, a world and a time, and says what to report, what to
//! do, and when to look again. It reads nothing else and changes nothing.
//!
//! Carrying a decision out means, in this order: publish its events, write its status if it differs, do
//! its actions one after the other up to the first that fails. Facts are thus on record before the
//! actions that rely on them, and a crash at any point leaves a world from which the next decision goes on.
//!
//! An emergency is different: see [`Evidence::BestEffort`].

mod cleanup;
mod demand;
mod draft;
mod events;
mod evidence;
mod fault;
mod pause;
mod provision;
mod reclaim;
mod removal;
mod situation;
mod status;
mod upkeep;

pub use evidence::Evidence;
pub use fault::{Fault, FaultKind};
pub use reclaim::{EMERGENCY_DRAIN_TIMEOUT_SECS, RAPID_RE_RECLAIM_THRESHOLD, RAPID_RE_RECLAIM_WINDOW_SECS};

use crate::action::{Action, Event};
use crate::spec::{InvalidSpec, ValidSpec};
use crate::world::World;
use demand::Demand;
use draft::Draft;
use five_spot_api::ScheduledMachineStatus;
use five_spot_api::condition::Reason;
use jiff::Timestamp;
use situation::{Situation, Spec};

/// What should happen now.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to announce before anything else.
    pub events: Vec<Event>,
    /// What to report.
    pub status: ScheduledMachineStatus,
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// When time alone makes another decision, if it ever does.
    pub wake_at: Option<Timestamp>,
    /// The pods of the Node have to be watched for the next decision.
    pub watch_pods: bool,
    /// What says which of them have to leave has to be looked up for the next decision.
    pub judge_pods: bool,
    /// What keeps the object from being where it should be and needs someone.
    pub fault: Option<Fault>,
    /// How sure one must be of the world before the actions are carried out.
    pub evidence: Evidence,
    /// True if the object is where it should be: nothing has to be waited for, and no watch event can be missing. It is
    /// what the condition `Ready` reports.
    pub settled: bool,
    /// True if the machine has a Ready Node in its cluster. It is what the condition `MachineReady` reports.
    pub is_lent: bool,
    /// Why a machine is wanted or not. It is the reason of the condition `Scheduled`.
    pub demand: Reason,
}

/// Decides what should happen to an object with a valid spec.
pub fn decide(spec: &ValidSpec, world: &World, now: Timestamp) -> Decision {
    run(&Situation::new(Spec::Valid(spec), world, now))
}

/// Decides what should happen to an object whose spec cannot be understood: a machine that is lent stays
/// as it is, and giving back, by deletion, kill switch or reclaim, still works.
pub fn decide_invalid(spec: &InvalidSpec, world: &World, now: Timestamp) -> Decision {
    run(&Situation::new(Spec::Invalid(spec), world, now))
}

fn run(situation: &Situation<'_>) -> Decision {
    let reclaim = reclaim::current(situation);
    let demand = demand::of(situation, reclaim.as_ref());
    let mut draft = Draft::new(situation);
    if let Some(reclaim) = &reclaim {
        reclaim::carry_out(situation, reclaim, &mut draft);
    } else {
        match demand {
            Demand::Wanted(_) => provision::bring_up(situation, &mut draft),
            Demand::Unwanted(cause) => removal::take_down(situation, cause, &mut draft),
            Demand::Unclear => {}
        }
    }
    fault::of_situation(situation, demand, &mut draft);
    upkeep::of_node(situation, demand, &mut draft);
    cleanup::of_object(situation, &mut draft);
    draft.doubts_node = status::has_left_its_node_behind(situation);
    pause::hold_back(situation, reclaim.as_ref(), &mut draft);
    let status = status::compose(situation, demand, &draft);
    let events = events::announce(situation, demand, &draft, &status);
    let evidence = evidence::needed(&draft);
    Decision {
        events,
        evidence,
        settled: status::is_settled(situation, demand, &draft),
        is_lent: status::is_lent(situation, &draft),
        demand: status::demand_reason(situation, demand),
        status,
        wake_at: draft.wake_at(situation),
        watch_pods: draft.watch_pods,
        judge_pods: draft.judge_pods,
        actions: draft.actions,
        fault: draft.fault,
    }
}
