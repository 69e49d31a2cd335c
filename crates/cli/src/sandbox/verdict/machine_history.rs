//! The states of one machine over time.

use crate::sandbox::trace::{Key, Presence, Snapshot, Trace};
use five_spot_api::{Phase, names};
use jiff::Timestamp;

/// The history of one object and its Machine.
pub struct MachineHistory<'a> {
    pub snapshots: Vec<(Timestamp, Option<&'a Snapshot>)>,
    machine: Vec<(Timestamp, Presence)>,
    /// The times at which the controller deleted the Machine.
    deletions: Vec<Timestamp>,
    end: Timestamp,
}

impl<'a> MachineHistory<'a> {
    pub fn of(trace: &'a Trace, key: &'a Key, end: Timestamp) -> Self {
        let machine_name = names::machine(&key.name);
        let deletions = trace.writes().filter(|(_, write)| {
            write.verb == "delete"
                && write.resource == "machines"
                && write.name.as_ref() == Some(&machine_name)
                && write.namespace.as_ref() == Some(&key.namespace)
                && write.succeeded()
        });
        Self {
            snapshots: trace.snapshots(key).filter(|(time, _)| *time < end).collect(),
            machine: trace.machine(key).filter(|(time, _)| *time < end).collect(),
            deletions: deletions.map(|(time, _)| time).collect(),
            end,
        }
    }

    /// The presence of the Machine in an interval, as consecutive pieces without gaps.
    pub fn machine_between(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, Timestamp, Presence)> {
        let mut changes = vec![(Timestamp::MIN, Presence::Gone)];
        changes.extend(&self.machine);
        pieces(&changes, from, to)
    }

    /// The times at which the controller deleted the Machine in an interval, without its start.
    pub fn deletions_between(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        self.deletions.iter().copied().filter(|time| from < *time && *time < to).collect()
    }

    /// Returns true if the Machine at `time` was created from a spec other than the current one.
    pub fn is_replaced(&self, time: Timestamp) -> bool {
        let made = self.machine.iter().rfind(|(at, presence)| *at <= time && *presence == Presence::There);
        let hash = |at: Timestamp| {
            self.snapshot_at(at).and_then(|one| one.spec.as_ref()).map(|spec| spec.machine_hash)
        };
        made.is_some_and(|(made, _)| hash(*made) != hash(time))
    }

    /// The periods in phase Error, each with its first message.
    pub fn errors(&self) -> Vec<(Timestamp, Timestamp, String)> {
        let errors = self.phases(Timestamp::MIN, self.end).into_iter();
        errors
            .filter(|(_, _, phase)| *phase == Some(Phase::Error))
            .map(|(from, to, _)| {
                let message = self.snapshot_at(from).map(|snapshot| snapshot.message.clone());
                (from, to, message.unwrap_or_default())
            })
            .collect()
    }

    /// Returns true if phase Error explains a deviation in an interval. The error itself is reported
    /// separately.
    pub fn is_faulty(&self, from: Timestamp, to: Timestamp) -> bool {
        self.phases(from, to).iter().any(|(_, _, phase)| *phase == Some(Phase::Error))
    }

    pub fn is_ready_between(&self, from: Timestamp, to: Timestamp) -> bool {
        let ready: Vec<_> =
            self.snapshots.iter().map(|(time, one)| (*time, one.is_some_and(|one| one.is_ready))).collect();
        pieces(&ready, from, to).iter().any(|(_, _, is_ready)| *is_ready)
    }

    /// The first time in an interval at which the phase differs, not counting errors.
    pub fn first_other_phase(
        &self,
        from: Timestamp,
        to: Timestamp,
        phase: Phase,
    ) -> Option<(Timestamp, Phase)> {
        let phases = self.phases(from, to).into_iter();
        phases
            .filter_map(|(from, _, found)| found.map(|found| (from, found)))
            .find(|(_, found)| *found != phase && *found != Phase::Error)
    }

    /// The periods in which pods blocked the drain.
    pub fn holds_since(&self, from: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let held: Vec<_> =
            self.snapshots.iter().map(|(time, one)| (*time, one.is_some_and(|one| one.is_held))).collect();
        let held = pieces(&held, from, self.end).into_iter().filter(|(_, _, is_held)| *is_held);
        held.map(|(began, released, _)| (began, released)).collect()
    }

    fn phases(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, Timestamp, Option<Phase>)> {
        let phases: Vec<_> =
            self.snapshots.iter().map(|(time, one)| (*time, one.and_then(|one| one.phase))).collect();
        pieces(&phases, from, to)
    }

    fn snapshot_at(&self, time: Timestamp) -> Option<&'a Snapshot> {
        self.snapshots.iter().rfind(|(at, _)| *at <= time).and_then(|(_, snapshot)| *snapshot)
    }
}

/// Cuts a series of values to an interval and merges equal neighbours.
fn pieces<T: Copy + PartialEq>(
    changes: &[(Timestamp, T)],
    from: Timestamp,
    to: Timestamp,
) -> Vec<(Timestamp, Timestamp, T)> {
    let mut pieces: Vec<(Timestamp, Timestamp, T)> = Vec::new();
    for (index, (began, value)) in changes.iter().enumerate() {
        let ended = changes.get(index + 1).map_or(to, |(next, _)| *next);
        let (began, ended) = ((*began).max(from), ended.min(to));
        match pieces.last_mut() {
            _ if began >= ended => {}
            Some(last) if last.2 == *value && last.1 == began => last.1 = ended,
            Some(_) | None => pieces.push((began, ended, *value)),
        }
    }
    pieces
}
