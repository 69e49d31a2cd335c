//! What a scenario has to go through besides itself.

use super::{BlowAt, Reordering};
use five_spot_apiserver::Clock;
use five_spot_apiserver::faults::{Fault, FaultPlan, RequestKind, Rule, Trigger};
use five_spot_cluster::Now;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Everything that can go wrong in one run. The default is that nothing does.
#[derive(Clone, Debug, Default)]
pub struct Disturbance {
    /// Blows at writes of the controller.
    pub blows: Vec<BlowAt>,
    /// Watch events that are delivered in a certain order with the responses to the writes that cause them.
    pub reordering: Option<Reordering>,
    /// Faults of single requests, from the start.
    pub rules: Vec<Rule>,
    /// Faults of many requests, for a time.
    pub storm: Option<Storm>,
    /// The controller's clock is wrong for a time.
    pub jump: Option<Jump>,
    /// A hostile tenant has a namespace of the same cluster.
    pub neighbours: bool,
    /// What is left to chance.
    pub seed: u64,
    /// How long a scenario waits for something; nothing is as long as always.
    pub patience: Option<Duration>,
    /// How long no write must come for everything to count as settled; nothing is as long as always.
    pub settles_after: Option<Duration>,
    /// The time of the scenario may pass before it can be played to its end. Then everything has to be
    /// [in order](crate::in_order) all the same.
    pub may_fail: bool,
}

/// A server that fails many requests for a while.
#[derive(Clone, Debug)]
pub struct Storm {
    /// How many of a thousand.
    pub per_mille: u64,
    /// What happens to them.
    pub fault: Fault,
    /// When it begins, counted from the start.
    pub after: Duration,
    /// How long it lasts.
    pub lasting: Duration,
}

/// A clock that is wrong for a while.
#[derive(Clone, Copy, Debug)]
pub struct Jump {
    /// When it begins, counted from the start.
    pub after: Duration,
    /// When it ends, counted from the start.
    pub until: Duration,
    /// By how much.
    pub by: SignedDuration,
}

impl Disturbance {
    /// One fault.
    pub fn rule(rule: Rule) -> Self {
        Self { rules: vec![rule], ..Self::default() }
    }

    /// Whether the scenario has to end within its own bound: nothing fails, at most an order changes.
    pub(super) fn keeps_time(&self) -> bool {
        self.blows.is_empty() && self.rules.is_empty() && self.storm.is_none() && self.jump.is_none()
    }

    /// The faults that the controller meets. Must be called inside a runtime: a storm ends by itself.
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
                    plan.add(Rule { kind, path: String::new(), trigger, fault: storm.fault.clone() });
                }
                tokio::time::sleep(storm.lasting).await;
                plan.clear();
            });
        }
        plan
    }

    /// What the controller takes for the time.
    pub(super) fn now(&self, clock: &Clock) -> Now {
        let (clock, start, jump) = (clock.clone(), clock.now(), self.jump);
        Arc::new(move || jump.map_or_else(|| clock.now(), |jump| jump.read(&clock, start)))
    }
}

impl Jump {
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
