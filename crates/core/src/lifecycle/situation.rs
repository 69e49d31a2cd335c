//! The input of a decision, and facts that follow from it directly.

use crate::schedule::Plan;
use crate::spec::{InvalidSpec, RemovalSettings, ValidSpec};
use crate::world::{MachineView, Slot, World};
use five_spot_api::ScheduledMachineStatus;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::names;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A spec, valid or not.
#[derive(Clone, Copy)]
pub(super) enum Spec<'a> {
    Valid(&'a ValidSpec),
    Invalid(&'a InvalidSpec),
}

/// The input of a decision: the spec, the observed state and the time.
pub(super) struct Situation<'a> {
    pub(super) spec: Spec<'a>,
    pub(super) world: &'a World,
    pub(super) now: Timestamp,
    /// `now`, rounded down to seconds: times in the status have no fractions, and a value that is read back must equal the
    /// one that was decided.
    pub(super) second: Timestamp,
}

impl<'a> Situation<'a> {
    pub(super) fn new(spec: Spec<'a>, world: &'a World, now: Timestamp) -> Self {
        Self { spec, world, now, second: floor(now) }
    }

    pub(super) const fn handling(&self) -> RemovalSettings {
        match self.spec {
            Spec::Valid(spec) => spec.handling,
            Spec::Invalid(spec) => spec.handling,
        }
    }

    pub(super) const fn valid(&self) -> Option<&'a ValidSpec> {
        match self.spec {
            Spec::Valid(spec) => Some(spec),
            Spec::Invalid(_) => None,
        }
    }

    pub(super) fn plan(&self) -> Option<&'a Plan> {
        self.valid().map(ValidSpec::plan)
    }

    pub(super) const fn prior(&self) -> &'a ScheduledMachineStatus {
        &self.world.status
    }

    pub(super) fn prior_condition(&self, kind: ConditionType) -> Option<&'a Condition> {
        self.prior().conditions.iter().find(|condition| condition.type_ == kind.as_str())
    }

    pub(super) fn prior_reason_is(&self, kind: ConditionType, reason: Reason) -> bool {
        self.prior_condition(kind).is_some_and(|condition| condition.reason == reason.as_str())
    }

    /// Returns a recorded time, unless it is in the future: then the clock was set back since, and waiting for that time would
    /// be wrong.
    pub(super) fn past(&self, time: Option<&Time>) -> Option<Timestamp> {
        time.map(instant).filter(|time| *time <= self.second)
    }

    /// Returns the Machine if it exists and is not being deleted.
    pub(super) fn living_machine(&self) -> Option<&'a MachineView> {
        self.world.machine.ours().filter(|machine| !machine.terminating)
    }

    /// Returns true if any object that 5-Spot created still exists in the management cluster. A recorded object whose state
    /// is unknown counts as existing.
    pub(super) fn anything_left(&self) -> bool {
        let (world, prior) = (self.world, self.prior());
        is_left(&world.machine, prior.machine_ref.is_some())
            || is_left(&world.bootstrap, prior.bootstrap_ref.is_some())
            || is_left(&world.infrastructure, prior.infrastructure_ref.is_some())
    }

    /// Returns the same, but an object whose state is unknown counts as existing even if it is not recorded.
    pub(super) fn anything_may_be_left(&self) -> bool {
        let world = self.world;
        let unknown =
            world.machine.is_unknown() || world.bootstrap.is_unknown() || world.infrastructure.is_unknown();
        unknown || self.anything_left()
    }

    /// Returns true if the node of this Machine has joined at some time.
    pub(super) fn has_joined(&self, machine: &MachineView) -> bool {
        let joined = self.prior().join.as_ref().and_then(|join| join.machine_uid.as_deref());
        joined == Some(machine.uid.as_str())
    }

    /// Returns the name of the Machine, whether it exists or not.
    pub(super) fn machine_name(&self) -> String {
        names::machine(&self.world.object.name)
    }

    pub(super) const fn being_deleted(&self) -> bool {
        self.world.object.deletion.is_some()
    }

    /// Returns true if the object is deleted with `--cascade=orphan`: it is released, and its Machine stays.
    pub(super) fn is_orphaning(&self) -> bool {
        self.world.object.deletion.is_some_and(|deletion| deletion.orphan)
    }
}

fn is_left<T>(slot: &Slot<T>, recorded: bool) -> bool {
    match slot {
        Slot::Ours(_) => true,
        Slot::Unknown => recorded,
        Slot::Absent | Slot::Foreign { .. } => false,
    }
}

/// Returns a recorded time as a timestamp.
pub(super) const fn instant(time: &Time) -> Timestamp {
    time.0
}

/// Rounds a time down to seconds.
pub(super) fn floor(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second() - i64::from(time.subsec_nanosecond() < 0)).unwrap_or(time)
}
