//! Faults around a write of the controller.

use super::Disturbance;
use super::event_order::{EventOrder, Reordering};
use super::leader_fault::LeaderFaultAt;
use crate::environment::LeaderFault;
use anyhow::{bail, ensure};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// More than any scenario needs: a controller that reaches this number writes endlessly.
const MOST_WRITES: usize = 1_000;

/// More requests than any scenario needs, including watches and live reads before actions.
const MOST_REQUESTS: usize = 100_000;

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// The controller crashes before the write is sent.
    DiesBefore,
    /// The write is carried out; the controller crashes before the response arrives.
    DiesUnaware,
    /// The controller crashes right after the response to the write.
    DiesAware,
    /// The write is lost; the controller continues with a connection error.
    LosesRequest,
    /// The write is carried out; the controller continues with a connection error.
    LosesReply,
}

impl WriteFault {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::DiesBefore, Self::DiesUnaware, Self::DiesAware, Self::LosesRequest, Self::LosesReply];
}

/// A fault at the write of a number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteFaultAt {
    /// The write.
    pub write: usize,
    /// The fault.
    pub fault: WriteFault,
}

impl fmt::Display for WriteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiesBefore => "dies-before",
            Self::DiesUnaware => "dies-unaware",
            Self::DiesAware => "dies-aware",
            Self::LosesRequest => "loses-request",
            Self::LosesReply => "loses-reply",
        })
    }
}

impl fmt::Display for WriteFaultAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.write, self.fault)
    }
}

/// Counts writes, and injects the fault at the planned one.
pub(super) struct FaultInjector {
    planned: Vec<WriteFaultAt>,
    leader_fault: Option<LeaderFaultAt>,
    reordering: Option<Reordering>,
    counts: Mutex<Counts>,
    crashed: Notify,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: usize,
    writes: usize,
    injected: usize,
    reordered: usize,
}

/// The plan for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Planned {
    /// Its fault.
    pub(super) fault: Option<WriteFault>,
    /// The fault of the leader that sends it.
    pub(super) leader_fault: Option<LeaderFault>,
    /// The time at which the event that it causes is delivered, if that is to be at a certain time.
    pub(super) order: Option<EventOrder>,
}

impl FaultInjector {
    pub(super) fn new(disturbance: &Disturbance) -> Self {
        Self {
            planned: disturbance.write_faults.clone(),
            leader_fault: disturbance.leader_fault,
            reordering: disturbance.reordering,
            counts: Mutex::default(),
            crashed: Notify::new(),
        }
    }

    /// A request is about to be sent. Returns what is planned for it.
    pub(super) fn admit(&self, is_write: bool) -> Planned {
        let mut counts = self.lock();
        counts.requests += 1;
        if !is_write {
            return Planned::default();
        }
        let number = counts.writes;
        counts.writes += 1;
        let fault = self.planned.iter().find(|planned| planned.write == number).map(|planned| planned.fault);
        let order = self.reordering.and_then(|reordering| reordering.of_write(number));
        let leader_fault = self.leader_fault.filter(|planned| planned.write == number);
        let leader_fault = leader_fault.map(|planned| planned.fault);
        counts.injected += usize::from(fault.is_some()) + usize::from(leader_fault.is_some());
        counts.reordered += usize::from(order.is_some());
        Planned { fault, leader_fault, order }
    }

    /// Records that the controller has crashed.
    pub(super) fn report_crash(&self) {
        self.crashed.notify_one();
    }

    /// Waits until the controller has crashed.
    pub(super) async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// True if the controller sends requests endlessly.
    pub(super) fn is_runaway(&self) -> bool {
        let counts = *self.lock();
        counts.writes > MOST_WRITES || counts.requests > MOST_REQUESTS
    }

    pub(super) fn check_limits(&self) -> anyhow::Result<()> {
        if self.is_runaway() {
            let Counts { requests, writes, .. } = *self.lock();
            bail!("the controller is out of control: {requests} requests, {writes} of them writes");
        }
        Ok(())
    }

    /// The number of attempted writes.
    pub(super) fn writes(&self) -> usize {
        self.lock().writes
    }

    /// The number of writes whose event was reordered.
    pub(super) fn reordered(&self) -> usize {
        self.lock().reordered
    }

    /// Checks that every planned fault has occurred.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Counts { writes, injected, reordered, .. } = *self.lock();
        let is_reordered = self.reordering.is_none() || reordered > 0;
        let planned = self.planned.len() + usize::from(self.leader_fault.is_some());
        ensure!(injected == planned && is_reordered, "there were only {writes} writes");
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
