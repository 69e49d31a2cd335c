//! The lifecycle: [`decide`] takes a spec, the observed state and a time, and returns the status to report, the actions to
//! carry out, and the time of the next decision. It reads nothing else and changes nothing.
//!
//! A decision is carried out in this order: publish its events, write its status if it differs, and carry out its actions one
//! after the other until the first failure. Facts are therefore recorded before the actions that rely on them, and after a
//! crash at any point the next decision continues from the state that was reached.
//!
//! For emergencies, see [`Evidence::BestEffort`].

mod brake;
mod claim;
mod cleanup;
mod demand;
mod draft;
mod events;
mod evidence;
mod fault;
mod pause;
mod provision;
mod reclaim;
mod reclaim_stages;
mod removal;
mod situation;
mod status;
mod upkeep;

pub use brake::{
    RemovalLimit, RemovalLimitError, UNPLANNED_REMOVALS_WINDOW, Unplanned, UnplannedRemovals, may_begin,
};
pub use evidence::Evidence;
pub use fault::{Fault, FaultKind};
pub use reclaim::{EMERGENCY_DRAIN_TIMEOUT_SECS, RAPID_RE_RECLAIM_THRESHOLD, RAPID_RE_RECLAIM_WINDOW_SECS};

use crate::action::{Action, Event};
use crate::spec::{InvalidSpec, ValidSpec};
use crate::world::World;
use demand::Demand;
use draft::Draft;
use five_spot_api::condition::Reason;
use five_spot_api::{Phase, ScheduledMachineStatus};
use jiff::Timestamp;
use situation::{Situation, Spec};

/// The result of [`decide`].
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The events to publish first.
    pub events: Vec<Event>,
    /// The status to report.
    pub status: ScheduledMachineStatus,
    /// The actions to carry out, in this order.
    pub actions: Vec<Action>,
    /// The next time at which the decision changes even if the observed state does not.
    pub wake_at: Option<Timestamp>,
    /// True if the next decision needs the pods of the Node.
    pub watch_pods: bool,
    /// True if the next decision needs the `DaemonSets` and drain rules that apply to these pods.
    pub resolve_drain_rules: bool,
    /// The error of the object that needs attention, if any.
    pub fault: Option<Fault>,
    /// The evidence that is required before the actions are carried out.
    pub evidence: Evidence,
    /// True if someone waits for a machine or for the end of an object: nothing that is only reported may take long.
    pub is_urgent: bool,
    /// True if the work on the object has a time limit, which `wake_at` contains: a reclaim or a deletion.
    pub has_time_limit: bool,
    /// True if the object is where it should be: nothing has to be waited for, and no watch event can be missing. It is
    /// what the condition `Ready` reports.
    pub settled: bool,
    /// True if the machine has a Ready Node in its cluster. It is what the condition `MachineReady` reports.
    pub is_lent: bool,
    /// The reason why a machine is wanted or not. It is the reason of the condition `Scheduled`.
    pub demand: Reason,
    /// The state of a removal that is not planned, if there is one.
    pub unplanned: Option<Unplanned>,
}

/// Decides what should happen to an object with a valid spec.
pub fn decide(spec: &ValidSpec, world: &World, now: Timestamp) -> Decision {
    run(&Situation::new(Spec::Valid(spec), world, now))
}

/// Decides what should happen to an object with an invalid spec: a machine that is lent stays as it is, and its removal by
/// deletion, kill switch or reclaim still works.
pub fn decide_invalid(spec: &InvalidSpec, world: &World, now: Timestamp) -> Decision {
    run(&Situation::new(Spec::Invalid(spec), world, now))
}

fn run(situation: &Situation<'_>) -> Decision {
    let reclaim = reclaim::current(situation);
    let demand = demand::of(situation, reclaim.as_ref());
    let mut draft = Draft::new(situation);
    draft.removal = brake::examine(situation, demand, pause::is_paused(situation));
    draft.timers_stand_still = pause::stops_timers(situation, &draft);
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
    upkeep::of_node(situation, &mut draft);
    cleanup::of_object(situation, &mut draft);
    claim::give_back(situation, &mut draft);
    removal::look_for_former_node(situation, &mut draft);
    pause::hold_back(situation, reclaim.as_ref(), &mut draft);
    reclaim_stages::note_progress(situation, &mut draft);
    let status = status::compose(situation, demand, &draft);
    let events = events::announce(situation, demand, &draft, &status);
    let evidence = evidence::needed(&draft);
    Decision {
        events,
        evidence,
        is_urgent: draft.is_urgent,
        has_time_limit: situation.being_deleted() || status.phase == Some(Phase::EmergencyRemove),
        settled: status::is_settled(situation, demand, &draft),
        is_lent: status::is_lent(situation, &draft),
        demand: status::demand_reason(situation, demand),
        unplanned: draft.removal.state,
        status,
        wake_at: draft.wake_at(situation),
        watch_pods: draft.watch_pods,
        resolve_drain_rules: draft.resolve_drain_rules,
        actions: draft.actions,
        fault: draft.fault,
    }
}
