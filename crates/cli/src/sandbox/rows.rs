//! The trace as rows, one per machine, each with its states over time. The text and the image both draw these
//! rows.

use crate::range::Range;
use crate::sandbox::expectation::{Expectation, intervals};
use crate::sandbox::trace::{Key, Snapshot, Trace};
use five_spot_api::Phase;
use jiff::{SignedDuration, Timestamp};

/// The state of a machine as the chart shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shade {
    /// Lent, with a Ready Node.
    Ready,
    /// Wanted, without a Ready Node.
    Coming,
    /// Being removed.
    ShuttingDown,
    /// Being removed, with a drain that is blocked by pods.
    Held,
    Inactive,
    Disabled,
    Terminated,
    EmergencyRemove,
    Error,
}

impl Shade {
    pub const ALL: [Self; 9] = [
        Self::Ready,
        Self::Coming,
        Self::ShuttingDown,
        Self::Held,
        Self::Inactive,
        Self::Disabled,
        Self::Terminated,
        Self::EmergencyRemove,
        Self::Error,
    ];

    fn of(snapshot: &Snapshot) -> Option<Self> {
        Some(match snapshot.phase? {
            Phase::Active if snapshot.is_ready => Self::Ready,
            Phase::Active | Phase::Pending => Self::Coming,
            Phase::ShuttingDown if snapshot.is_held => Self::Held,
            Phase::ShuttingDown => Self::ShuttingDown,
            Phase::Inactive => Self::Inactive,
            Phase::Disabled => Self::Disabled,
            Phase::Terminated => Self::Terminated,
            Phase::EmergencyRemove => Self::EmergencyRemove,
            Phase::Error => Self::Error,
        })
    }

    /// The name in the legend.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ready => "active",
            Self::Coming => "coming up",
            Self::ShuttingDown => "shutting down",
            Self::Held => "drain held",
            Self::Inactive => "inactive",
            Self::Disabled => "disabled",
            Self::Terminated => "terminated",
            Self::EmergencyRemove => "emergency",
            Self::Error => "error",
        }
    }
}

/// A half-open interval with one shade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub from: Timestamp,
    pub to: Timestamp,
    pub shade: Shade,
}

/// The row of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    /// Sorted by time. Adjacent bars have different shades.
    pub bars: Vec<Bar>,
}

impl Row {
    /// The total time for which the machine was lent with a Ready Node.
    pub fn ready_for(&self) -> SignedDuration {
        let ready = self.bars.iter().filter(|bar| bar.shade == Shade::Ready);
        ready.map(|bar| bar.to.duration_since(bar.from)).sum()
    }

    /// The shade at the end, if the object still exists.
    pub fn last(&self, end: Timestamp) -> Option<Shade> {
        self.bars.last().filter(|bar| bar.to == end).map(|bar| bar.shade)
    }
}

/// The rows of all machines, sorted by name, up to `now`.
pub fn rows(trace: &Trace, range: Range, now: Timestamp) -> Vec<Row> {
    let end = now.min(range.to);
    trace.keys().into_iter().map(|key| Row { key: key.clone(), bars: bars(trace, key, end) }).collect()
}

fn bars(trace: &Trace, key: &Key, end: Timestamp) -> Vec<Bar> {
    let snapshots: Vec<_> = trace.snapshots(key).collect();
    let mut bars: Vec<Bar> = Vec::new();
    for (index, (from, snapshot)) in snapshots.iter().enumerate() {
        let to = snapshots.get(index + 1).map_or(end, |(next, _)| *next).min(end);
        let Some(shade) = snapshot.and_then(Shade::of).filter(|_| *from < to) else {
            continue;
        };
        match bars.last_mut() {
            Some(last) if last.shade == shade && last.to == *from => last.to = to,
            Some(_) | None => bars.push(Bar { from: *from, to, shade }),
        }
    }
    bars
}

/// The periods in which a machine was wanted.
pub fn wanted(trace: &Trace, key: &Key, end: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let intervals = intervals(trace, key, end).into_iter();
    let mut wanted: Vec<(Timestamp, Timestamp)> = Vec::new();
    for interval in intervals.filter(|interval| matches!(interval.expected, Expectation::Machine { .. })) {
        match wanted.last_mut() {
            // A different join timeout does not start a new window.
            Some(last) if last.1 == interval.from => last.1 = interval.to,
            Some(_) | None => wanted.push((interval.from, interval.to)),
        }
    }
    wanted
}
