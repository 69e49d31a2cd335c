//! The protocol of the election, without I/O and without its own clock. It is that of client-go, with the times at
//! which a record was observed locally. The times in the Lease are only informative; the clocks of two replicas are
//! never compared.

use five_spot_cluster::transport::{LeaseRecord, StoredLease};
use jiff::Timestamp;
use std::time::Duration;

/// The duration of a Lease that was released, as in client-go.
const RELEASED_SECONDS: u32 = 1;

/// The longest duration that is accepted. An edited record must not keep all instances waiting forever.
pub(super) const MAX_DURATION: Duration = Duration::from_hours(1);

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// The time for which other instances do not acquire the Lease after a renewal.
    pub duration: Duration,
    /// The time for which the leader works after its last renewal; below `duration`.
    pub renew_deadline: Duration,
    /// The time between two renewals, and between two attempts; below `renew_deadline`.
    pub retry_period: Duration,
}

impl Default for LeaseTiming {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this moment, unless the Lease changes.
    Wait(Duration),
    /// Write this record, provided that the Lease is still at this version; create it if there is no version.
    Write(LeaseRecord, Option<String>),
    /// Stop working: this instance no longer holds the Lease.
    Resign(Loss),
}

/// The reason for which a leader has to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The Lease was not renewed in time.
    Expired,
    /// The Lease names another holder, or none.
    Replaced(String),
}

/// The Lease as last seen.
#[derive(Clone, Debug)]
struct Seen {
    /// Absent if there is no Lease.
    lease: Option<StoredLease>,
    /// The time by which its holder has to have stopped.
    free_at: Duration,
}

/// The Lease as held by this instance.
#[derive(Clone, Copy, Debug)]
struct Held {
    valid_until: Duration,
    renew_at: Duration,
}

/// True if the holder has released the Lease, which sets this duration. With another duration someone else
/// has cleared the holder, which may still work.
fn is_released(record: &LeaseRecord) -> bool {
    record.holder.is_empty() && record.duration_seconds == RELEASED_SECONDS
}

/// One replica in the election. All times are those of one local clock.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    identity: String,
    timing: LeaseTiming,
    seen: Option<Seen>,
    held: Option<Held>,
    try_at: Duration,
}

impl Candidate {
    pub(super) fn new(identity: String, timing: LeaseTiming) -> Self {
        Self { identity, timing, seen: None, held: None, try_at: Duration::ZERO }
    }

    /// The time until which this instance may work, if it holds the Lease.
    pub(super) fn valid_until(&self) -> Option<Duration> {
        self.held.map(|held| held.valid_until)
    }

    /// The holder of the Lease as far as is known; empty if there is none.
    pub(super) fn holder(&self) -> Option<&str> {
        Some(self.seen.as_ref()?.lease.as_ref().map_or("", |lease| &lease.record.holder))
    }

    /// The content of the Lease as far as is known; absent if there is none.
    pub(super) fn record(&self) -> Option<&LeaseRecord> {
        Some(&self.seen.as_ref()?.lease.as_ref()?.record)
    }

    /// The version of the Lease as far as is known.
    pub(super) fn version(&self) -> Option<&str> {
        Some(&self.seen.as_ref()?.lease.as_ref()?.version)
    }

    /// Records the Lease as the API server reports it.
    pub(super) fn observe(&mut self, lease: Option<StoredLease>, now: Duration) {
        let before = self.seen.take();
        let known = before.as_ref().and_then(|seen| seen.lease.as_ref()).map(|lease| &lease.record);
        let free_at = match (&lease, &before) {
            // A label or the duration was changed, or nothing: the holder has not renewed it.
            (Some(lease), Some(before)) if known.is_some_and(|known| !lease.record.renews(known)) => {
                before.free_at
            }
            (Some(lease), _) if is_released(&lease.record) => now,
            // If the Lease was edited by hand, the previous holder may not know yet and works until its time is
            // over.
            (Some(lease), before) => {
                let before = before.as_ref().map_or(now, |before| before.free_at);
                self.free_at(&lease.record, now).max(before)
            }
            // The Lease was deleted. Its holder may work until its time is over.
            (None, Some(before)) => before.free_at,
            (None, None) => now,
        };
        self.seen = Some(Seen { lease, free_at });
    }

    fn free_at(&self, record: &LeaseRecord, now: Duration) -> Duration {
        let duration = match record.duration_seconds {
            0 => self.timing.duration,
            seconds => Duration::from_secs(seconds.into()).min(MAX_DURATION),
        };
        now + duration
    }

    /// The next step at this moment.
    pub(super) fn step(&mut self, now: Duration, wall: Timestamp) -> Step {
        let Some(seen) = &self.seen else { return Step::Wait(now + self.timing.retry_period) };
        let holder = seen.lease.as_ref().map(|lease| lease.record.holder.as_str());
        if let Some(held) = self.held {
            let replaced = holder.filter(|holder| *holder != self.identity).map(str::to_owned);
            let loss =
                replaced.map(Loss::Replaced).or_else(|| (now >= held.valid_until).then_some(Loss::Expired));
            if let Some(loss) = loss {
                self.held = None;
                self.try_at = now + self.timing.retry_period;
                return Step::Resign(loss);
            }
            // A deleted Lease is created again at once.
            if now < held.renew_at && holder.is_some() {
                return Step::Wait(held.renew_at.min(held.valid_until));
            }
            return if now < self.try_at {
                Step::Wait(self.try_at.min(held.valid_until))
            } else {
                self.claim(wall)
            };
        }
        // After a write whose answer was lost, the Lease may already name this instance.
        let free_at = if holder == Some(&self.identity) { now } else { seen.free_at };
        let at = free_at.max(self.try_at);
        if now < at { Step::Wait(at) } else { self.claim(wall) }
    }

    fn claim(&self, wall: Timestamp) -> Step {
        let lease = self.seen.as_ref().and_then(|seen| seen.lease.as_ref());
        let before = lease.map(|lease| &lease.record);
        let record = LeaseRecord::held_by(&self.identity, self.timing.duration, before, wall);
        Step::Write(record, lease.map(|lease| lease.version.clone()))
    }

    /// Records that a write of this instance, sent at `sent`, was accepted.
    pub(super) fn written(&mut self, lease: StoredLease, sent: Duration) {
        let free_at = sent + self.timing.duration;
        self.seen = Some(Seen { lease: Some(lease), free_at });
        self.held = Some(Held {
            valid_until: sent + self.timing.renew_deadline,
            renew_at: sent + self.timing.retry_period,
        });
        self.try_at = sent;
    }

    /// Records that a write failed. The next one follows after the retry period.
    pub(super) fn failed(&mut self, now: Duration) {
        self.try_at = now + self.timing.retry_period;
    }

    /// Allows the next write at once.
    pub(super) fn retry_now(&mut self, now: Duration) {
        self.try_at = now;
    }

    /// The write that releases the Lease, if it names this instance. The Lease has to be observed again before another one.
    pub(super) fn release(&mut self, wall: Timestamp) -> Option<(LeaseRecord, String)> {
        self.held = None;
        let lease = self.seen.take()?.lease?;
        let record = LeaseRecord {
            holder: String::new(),
            duration_seconds: RELEASED_SECONDS,
            acquired: Some(wall),
            renewed: Some(wall),
            transitions: lease.record.transitions,
        };
        (lease.record.holder == self.identity).then_some((record, lease.version))
    }
}
