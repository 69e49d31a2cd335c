//! What befalls the controller around one of its writes.

use anyhow::{bail, ensure};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// More than any scenario needs: whoever writes so often writes for ever.
const MOST_WRITES: usize = 1_000;

/// More than any scenario asks for, watches and looks before leaps included.
const MOST_REQUESTS: usize = 100_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The controller dies before the write is sent.
    DiesBefore,
    /// The write is carried out; the controller dies before it hears so.
    DiesUnaware,
    /// The controller dies as soon as it has heard that the write was carried out.
    DiesAware,
    /// The write is lost on its way; the controller lives on, and hears that the connection broke.
    LosesRequest,
    /// The write is carried out; the controller lives on, and hears that the connection broke.
    LosesReply,
}

impl Blow {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::DiesBefore, Self::DiesUnaware, Self::DiesAware, Self::LosesRequest, Self::LosesReply];
}

/// A blow at the write of a number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlowAt {
    /// Which write.
    pub write: usize,
    /// What happens.
    pub blow: Blow,
}

impl fmt::Display for Blow {
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

impl fmt::Display for BlowAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.write, self.blow)
    }
}

/// Counts writes, and lets the blow fall when its turn has come.
pub(super) struct Fate {
    planned: Vec<BlowAt>,
    counts: Mutex<Counts>,
    fallen: Notify,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: usize,
    writes: usize,
    struck: usize,
}

impl Fate {
    pub(super) fn new(planned: Vec<BlowAt>) -> Self {
        Self { planned, counts: Mutex::default(), fallen: Notify::new() }
    }

    /// A request is about to be sent. Whether something befalls it.
    pub(super) fn admit(&self, is_write: bool) -> Option<Blow> {
        let mut counts = self.lock();
        counts.requests += 1;
        if !is_write {
            return None;
        }
        let number = counts.writes;
        counts.writes += 1;
        let blow = self.planned.iter().find(|planned| planned.write == number)?.blow;
        counts.struck += 1;
        Some(blow)
    }

    /// The controller has died.
    pub(super) fn fell(&self) {
        self.fallen.notify_one();
    }

    /// Waits until the controller has died.
    pub(super) async fn fallen(&self) {
        self.fallen.notified().await;
    }

    /// Whether anybody is out of control.
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

    /// How many writes were tried.
    pub(super) fn writes(&self) -> usize {
        self.lock().writes
    }

    /// The blows that were planned have to have fallen.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Counts { writes, struck, .. } = *self.lock();
        ensure!(struck == self.planned.len(), "there were only {writes} writes");
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
