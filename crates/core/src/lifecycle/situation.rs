//! The three things that a decision depends on, and what can be read off them directly.

use crate::schedule::Plan;
use crate::spec::{Handling, InvalidSpec, ValidSpec};
use crate::world::{MachineView, Slot, World};
use five_spot_api::ScheduledMachineStatus;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::names;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A spec, understood or not.
#[derive(Clone, Copy)]
pub(super) enum Spec<'a> {
    Valid(&'a ValidSpec),
    Invalid(&'a InvalidSpec),
}

/// Spec, world and time.
pub(super) struct Situation<'a> {
    pub(super) spec: Spec<'a>,
    pub(super) world: &'a World,
    pub(super) now: Timestamp,
    /// The second that `now` lies in: status knows no fractions, and what is read back must be what was
    /// decided upon.
    pub(super) second: Timestamp,
}

impl<'a> Situation<'a> {
    pub(super) fn new(spec: Spec<'a>, world: &'a World, now: Timestamp) -> Self {
        Self { spec, world, now, second: floor(now) }
    }

    pub(super) const fn handling(&self) -> Handling {
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

    /// A remembered time, unless it lies in the future: then the clock has been put back since, and to
    /// wait for that moment would be wrong.
    pub(super) fn past(&self, time: Option<&Time>) -> Option<Timestamp> {
        time.map(instant).filter(|time| *time <= self.second)
    }

    /// The Machine, if it is ours and not on its way out.
    pub(super) fn living_machine(&self) -> Option<&'a MachineView> {
        self.world.machine.ours().filter(|machine| !machine.terminating)
    }

    /// Whether anything of ours exists in the management cluster besides the object itself. What is on record and
    /// cannot be asked about counts as existing.
    pub(super) fn anything_left(&self) -> bool {
        let (world, prior) = (self.world, self.prior());
        is_left(&world.machine, prior.machine_ref.is_some())
            || is_left(&world.bootstrap, prior.bootstrap_ref.is_some())
            || is_left(&world.infrastructure, prior.infrastructure_ref.is_some())
    }

    /// The same, where even what is not on record counts as long as nobody can say that it does not exist.
    pub(super) fn anything_may_be_left(&self) -> bool {
        let world = self.world;
        let unknown =
            world.machine.is_unknown() || world.bootstrap.is_unknown() || world.infrastructure.is_unknown();
        unknown || self.anything_left()
    }

    /// The node of this Machine has joined, at some time.
    pub(super) fn has_joined(&self, machine: &MachineView) -> bool {
        let joined = self.prior().join.as_ref().and_then(|join| join.machine_uid.as_deref());
        joined == Some(machine.uid.as_str())
    }

    /// The name of the Machine, whether it exists or not.
    pub(super) fn machine_name(&self) -> String {
        names::machine(&self.world.object.name)
    }

    pub(super) const fn being_deleted(&self) -> bool {
        self.world.object.deletion.is_some()
    }
}

fn is_left<T>(slot: &Slot<T>, recorded: bool) -> bool {
    match slot {
        Slot::Ours(_) => true,
        Slot::Unknown => recorded,
        Slot::Absent | Slot::Foreign { .. } => false,
    }
}

/// The instant of a remembered time.
pub(super) const fn instant(time: &Time) -> Timestamp {
    time.0
}

/// The second that a moment lies in.
pub(super) fn floor(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second() - i64::from(time.subsec_nanosecond() < 0)).unwrap_or(time)
}
