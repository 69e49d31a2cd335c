//! The events of a decision, derived from the difference between the previous and the new status.

use super::brake;
use super::demand::{Demand, UnwantedBy};
use super::draft::Draft;
use super::fault::FaultKind;
use super::reclaim;
use super::situation::{Situation, instant};
use super::status::{messages, was_wanted};
use crate::action::{Event, EventCause};
use crate::text;
use crate::world::Uid;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::event::EventReason;
use five_spot_api::{Phase, ScheduledMachineStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Returns the events of a decision, in the order in which things happen. While an object is paused it has none but that the
/// brake holds it; they follow when the pause is over.
pub(super) fn announce(
    situation: &Situation<'_>,
    demand: Demand,
    draft: &Draft,
    status: &ScheduledMachineStatus,
) -> Vec<Event> {
    if !draft.held_back.is_empty() {
        return brake::announce(situation, draft).into_iter().collect();
    }
    let change = Change { situation, demand, draft, status };
    let mut events = reclaim::announce(situation, &status.reclaims);
    let others = [
        change.kill_switch(),
        change.schedule_inactive(),
        change.recovered(),
        change.schedule_active(),
        change.machine_created(),
        change.grace_period_active(),
        change.node_draining(),
        change.node_drained(),
        change.node_lost(),
        change.machine_in_use(),
        change.machine_deleted(),
        change.node_left_behind(),
        change.schedule_disabled(),
        change.cleanup_timed_out(),
        change.reconcile_failed(),
    ];
    events.extend(others.into_iter().flatten());
    events
}

/// The transition from the previous status to the new one.
struct Change<'a> {
    situation: &'a Situation<'a>,
    demand: Demand,
    draft: &'a Draft,
    status: &'a ScheduledMachineStatus,
}

impl Change<'_> {
    fn prior(&self) -> &ScheduledMachineStatus {
        self.situation.prior()
    }

    fn was(&self) -> Option<Phase> {
        self.prior().phase
    }

    fn is(&self) -> Option<Phase> {
        self.status.phase
    }

    fn enters(&self, phase: Phase) -> bool {
        self.is() == Some(phase) && self.was() != Some(phase)
    }

    fn pause_is_over(&self) -> bool {
        let was = self.situation.prior_reason_is(ConditionType::Ready, Reason::Paused);
        was && self.draft.held_back.is_empty()
    }

    /// Returns the cause of a change of demand: an edit of the spec, or else the boundary that was crossed. Both are the same
    /// when the decision is repeated after a crash.
    fn demand_cause(&self, boundary: Option<jiff::Timestamp>) -> EventCause {
        let generation = self.situation.world.object.generation;
        match self.prior().observed_generation {
            Some(observed) if observed != generation => EventCause::Generation(generation),
            Some(_) | None => EventCause::Instant(boundary.unwrap_or(self.situation.second)),
        }
    }

    fn machine_name(&self) -> String {
        self.situation.machine_name()
    }

    /// The name of the Machine's node, which the event is about.
    fn node_name(&self) -> &str {
        self.status.node_ref.as_ref().map_or("", |node| node.name.as_str())
    }

    fn removal_cause(&self) -> EventCause {
        if let Some(deletion) = self.situation.world.object.deletion {
            return EventCause::Instant(deletion.since);
        }
        let closed = self.prior().next_cleanup.as_ref().map(instant);
        self.demand_cause(closed.filter(|time| *time <= self.situation.now))
    }

    fn shutdown_cause(&self) -> EventCause {
        let started = self.status.shutdown_started_at.as_ref().map_or(self.situation.second, instant);
        EventCause::Instant(started)
    }

    fn event(reason: EventReason, note: impl Into<String>, cause: EventCause) -> Event {
        Event { reason, note: note.into(), cause }
    }

    fn kill_switch(&self) -> Option<Event> {
        let begins = self.demand == Demand::Unwanted(UnwantedBy::KillSwitch)
            && !self.situation.prior_reason_is(ConditionType::Scheduled, Reason::KillSwitch);
        let cause = EventCause::Generation(self.situation.world.object.generation);
        begins.then(|| {
            let note =
                format!("spec.killSwitch is true: removing Machine {} without draining", self.machine_name());
            Self::event(EventReason::KillSwitchActivated, note, cause)
        })
    }

    fn schedule_inactive(&self) -> Option<Event> {
        let by_clock =
            matches!(self.demand, Demand::Unwanted(UnwantedBy::OutsideWindow | UnwantedBy::OverrideDown));
        let changed = was_wanted(self.situation) || (self.pause_is_over() && self.situation.anything_left());
        (by_clock && changed).then(|| {
            let note = format!("The machine is no longer wanted: {}", messages::demand(self.demand));
            Self::event(EventReason::ScheduleInactive, note, self.removal_cause())
        })
    }

    fn recovered(&self) -> Option<Event> {
        let left_error = self.was() == Some(Phase::Error) && self.is() != Some(Phase::Error);
        // Another attempt is not a recovery yet; a node that has joined is.
        let tried_again = self.status.join.as_ref().is_some_and(|join| join.failed_at.is_some());
        let joined_again = !tried_again
            && self.was() != Some(Phase::Error)
            && self.prior().join.as_ref().is_some_and(|join| join.failed_at.is_some())
            && self.is() == Some(Phase::Active);
        let over = (left_error && !tried_again) || joined_again;
        let since = self
            .situation
            .prior_condition(ConditionType::Ready)
            .map(|ready| instant(&ready.last_transition_time));
        let cause = EventCause::Instant(since.unwrap_or(self.situation.second));
        over.then(|| Self::event(EventReason::Recovered, "Recovered from the last error", cause))
    }

    fn schedule_active(&self) -> Option<Event> {
        let from_error = self.was() == Some(Phase::Error);
        let failed_at = self.status.join.as_ref().and_then(|join| join.failed_at.as_ref());
        if let Some(failed_at) = failed_at.filter(|_| from_error && self.enters(Phase::Pending)) {
            let note =
                "Creating another Machine because the node of the last one did not join within joinTimeout";
            return Some(Self::event(
                EventReason::ScheduleActive,
                note,
                EventCause::Instant(instant(failed_at)),
            ));
        }
        let begins = self.enters(Phase::Pending) && !from_error;
        let resumes = self.enters(Phase::Active) && self.was() == Some(Phase::ShuttingDown);
        let boundary = self.status.last_scheduled_time.as_ref().map(instant);
        (begins || resumes).then(|| {
            let note = format!("A machine is wanted: {}", messages::demand(self.demand));
            Self::event(EventReason::ScheduleActive, note, self.demand_cause(boundary))
        })
    }

    fn machine_created(&self) -> Option<Event> {
        let machine = self.situation.living_machine()?;
        let known = self.prior().machine_ref.as_ref().and_then(|reference| reference.uid.as_deref());
        let is_new = self.demand.wanted() && known != Some(machine.uid.as_str());
        is_new.then(|| {
            let note = format!("Created Machine {}", self.machine_name());
            Self::event(EventReason::MachineCreated, note, EventCause::Object(machine.uid.clone()))
        })
    }

    fn grace_period_active(&self) -> Option<Event> {
        let graceful = self.is() != Some(Phase::EmergencyRemove);
        let begins = self.prior().shutdown_started_at.is_none() && self.status.shutdown_started_at.is_some();
        (graceful && begins).then(|| {
            let note = format!("Started the graceful shutdown of Machine {}", self.machine_name());
            Self::event(EventReason::GracePeriodActive, note, self.removal_cause())
        })
    }

    fn drain_begins(&self) -> bool {
        let before = self.prior().drain.as_ref().map(|drain| &drain.started_at);
        self.status.drain.as_ref().is_some_and(|drain| before != Some(&drain.started_at))
    }

    fn node_draining(&self) -> Option<Event> {
        let pods = self.status.drain.as_ref().map_or(0, |drain| drain.total);
        let pods = text::counted(usize::try_from(pods).unwrap_or_default(), "pod");
        self.drain_begins().then(|| {
            let note = format!("Draining node {}: {pods} to remove", self.node_name());
            Self::event(EventReason::NodeDraining, note, self.shutdown_cause())
        })
    }

    fn node_drained(&self) -> Option<Event> {
        let complete = |status: &ScheduledMachineStatus| {
            status.drain.as_ref().is_some_and(|drain| drain.evicted >= drain.total)
        };
        let just_now = complete(self.status) && (self.drain_begins() || !complete(self.prior()));
        just_now.then(|| {
            let note = format!("Drained node {}", self.node_name());
            Self::event(EventReason::NodeDrained, note, self.shutdown_cause())
        })
    }

    fn is_new(&self, kind: ConditionType, reason: Reason) -> Option<String> {
        let now = self.status.conditions.iter().find(|condition| condition.type_ == kind.as_str())?;
        let said = |condition: &Condition| condition.reason == reason.as_str() && condition.status == "False";
        let is_new = said(now) && !self.situation.prior_condition(kind).is_some_and(said);
        is_new.then(|| now.message.clone())
    }

    fn node_lost(&self) -> Option<Event> {
        let note = self.is_new(ConditionType::MachineReady, Reason::NodeLost)?;
        let since = self.status.join.as_ref().and_then(|join| join.waiting_since.as_ref());
        let cause = EventCause::Instant(since.map_or(self.situation.second, instant));
        Some(Self::event(EventReason::NodeLost, note, cause))
    }

    fn machine_in_use(&self) -> Option<Event> {
        let note = self.is_new(ConditionType::ReferencesValid, Reason::MachineInUse)?;
        let machine = self.situation.world.machine.ours()?;
        Some(Self::event(EventReason::MachineInUse, note, EventCause::Object(machine.uid.clone())))
    }

    fn node_left_behind(&self) -> Option<Event> {
        let message = self.is_new(ConditionType::MachineReady, Reason::NodeLeftBehind)?;
        let node = self.prior().node_ref.as_ref()?;
        let cause = EventCause::Object(Uid::from(node.uid.clone().unwrap_or_default()));
        Some(Self::event(EventReason::NodeLeftBehind, message, cause))
    }

    fn machine_deleted(&self) -> Option<Event> {
        let was = self.prior().machine_ref.as_ref()?;
        let machine = &self.situation.world.machine;
        let gone = !self.demand.wanted() && machine.ours().is_none() && !machine.is_unknown();
        let cause = EventCause::Object(Uid::from(was.uid.clone().unwrap_or_default()));
        gone.then(|| Self::event(EventReason::MachineDeleted, format!("Deleted Machine {}", was.name), cause))
    }

    fn schedule_disabled(&self) -> Option<Event> {
        let by_hand = self.demand == Demand::Unwanted(UnwantedBy::Disabled);
        let cause = EventCause::Generation(self.situation.world.object.generation);
        (by_hand && self.enters(Phase::Disabled)).then(|| {
            Self::event(
                EventReason::ScheduleDisabled,
                "The schedule is disabled and no machine is lent",
                cause,
            )
        })
    }

    fn cleanup_timed_out(&self) -> Option<Event> {
        let fault = self.draft.fault.as_ref().filter(|fault| fault.kind == FaultKind::CleanupTimedOut)?;
        let said = self.situation.prior_reason_is(ConditionType::Ready, Reason::FinalizerCleanupTimedOut);
        let cause = EventCause::Instant(self.situation.world.object.deletion?.since);
        (!said).then(|| Self::event(EventReason::FinalizerCleanupTimedOut, fault.message.clone(), cause))
    }

    fn reconcile_failed(&self) -> Option<Event> {
        let fault = self.draft.fault.as_ref()?;
        let cause = EventCause::Instant(self.situation.second);
        self.enters(Phase::Error)
            .then(|| Self::event(EventReason::ReconcileFailed, fault.message.clone(), cause))
    }
}
