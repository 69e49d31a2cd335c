//! Disturbances of a scenario.

use super::{LeaderFaultAt, Reordering, WriteFaultAt};
use crate::scenario::Ending;
use five_spot_apiserver::Clock;
use five_spot_apiserver::faults::{FaultPlan, FaultRule, InjectedFault, RequestKind, Trigger};
use five_spot_cluster::Now;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// The faults of one run. The default is none.
#[derive(Clone, Debug, Default)]
pub struct Disturbance {
    /// Faults at writes of the controller.
    pub write_faults: Vec<WriteFaultAt>,
    /// A fault of the leader of several controllers.
    pub leader_fault: Option<LeaderFaultAt>,
    /// A second controller is on standby.
    pub standby: bool,
    /// Watch events that are delivered in a certain order with the responses to the writes that cause them.
    pub reordering: Option<Reordering>,
    /// Faults of single requests, from the start.
    pub rules: Vec<FaultRule>,
    /// Faults of many requests, for a time.
    pub storm: Option<Storm>,
    /// The controller's clock is wrong for a time.
    pub jump: Option<ClockJump>,
    /// A hostile tenant has a namespace of the same cluster.
    pub neighbours: bool,
    /// The controller watches one more namespace, which does not exist. Only where it watches selected namespaces.
    pub missing_namespace: bool,
    /// The seed.
    pub seed: u64,
    /// The time a scenario waits for something; `None` is the default.
    pub wait_limit: Option<Duration>,
    /// The time without a write after which everything counts as settled; `None` is the default.
    pub settles_after: Option<Duration>,
    /// The time of the scenario may pass before it can be run to its end. Then everything has to be
    /// [in order](crate::in_order) all the same.
    pub may_fail: bool,
    /// The end of the undisturbed scenario, to compare with if it fails.
    pub usual_ending: Option<Ending>,
    /// Pods may be counted more than once: a list shows some of them again that have left.
    pub recounts_pods: bool,
    /// The scenario takes longer than its own time limit, because others have to finish first.
    pub waits_for_others: bool,
}

/// A server that fails many requests for a while.
#[derive(Clone, Debug)]
pub struct Storm {
    /// The failing requests per thousand.
    pub per_mille: u64,
    /// The fault.
    pub fault: InjectedFault,
    /// The time at which it begins, counted from the start.
    pub after: Duration,
    /// The duration.
    pub lasting: Duration,
}

/// A clock that is wrong for a while.
#[derive(Clone, Copy, Debug)]
pub struct ClockJump {
    /// The time at which it begins, counted from the start.
    pub after: Duration,
    /// The time at which it ends, counted from the start.
    pub until: Duration,
    /// By how much.
    pub by: SignedDuration,
}

impl Disturbance {
    /// One fault.
    pub fn rule(rule: FaultRule) -> Self {
        Self { rules: vec![rule], ..Self::default() }
    }

    /// Returns true if the scenario has to end within its own time limit: nothing fails, at most an order
    /// changes.
    pub(super) fn keeps_time(&self) -> bool {
        self.write_faults.is_empty()
            && !self.standby
            && self.rules.is_empty()
            && self.storm.is_none()
            && self.jump.is_none()
            && !self.waits_for_others
    }

    /// The multiple of its own bound that the scenario may take: a hostile tenant may cost the others a factor of two.
    pub(super) const fn time_factor(&self) -> u32 {
        if self.neighbours { 2 } else { 1 }
    }

    /// The faults for the controller. Must be called inside a runtime: a storm ends by itself.
    pub(super) fn plan(&self, clock: &Clock) -> FaultPlan {
        let plan = FaultPlan::new(clock.clone(), self.seed);
        for rule in &self.rules {
            plan.add(rule.clone());
        }
        if let Some(storm) = self.storm.clone() {
            let plan = plan.clone();
            tokio::spawn(async move {
                tokio::time::sleep(storm.after).await;
                for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Watch] {
                    let trigger = Trigger::PerMille(storm.per_mille);
                    plan.add(FaultRule { kind, path: String::new(), trigger, fault: storm.fault.clone() });
                }
                tokio::time::sleep(storm.lasting).await;
                plan.clear();
            });
        }
        plan
    }

    /// The clock of the controller.
    pub(super) fn now(&self, clock: &Clock) -> Now {
        let (clock, start, jump) = (clock.clone(), clock.now(), self.jump);
        Arc::new(move || jump.map_or_else(|| clock.now(), |jump| jump.read(&clock, start)))
    }
}

impl ClockJump {
    fn read(self, clock: &Clock, start: Timestamp) -> Timestamp {
        let now = clock.now();
        let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
        if passed >= self.after && passed < self.until {
            now.saturating_add(self.by).unwrap_or(now)
        } else {
            now
        }
    }
}
