//! What was wanted of a machine, from moment to moment: computed from its specs alone, with the same plan that
//! `preview` shows and without looking at what the controller did.

use crate::sandbox::trace::{Key, Snapshot, Trace};
use five_spot_api::{OnTimeout, Phase};
use five_spot_core::schedule::PlanState;
use jiff::{SignedDuration, Timestamp};

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A machine, whose node has to be Ready after this long.
    Machine { join_timeout: SignedDuration },
    /// No machine.
    Nothing(Removal),
    /// Nobody can say: the spec is not valid, or somebody holds the controller back.
    Whatever,
}

/// How a machine that is not wanted goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// How long it may take until the Machine is deleted; nothing under a kill switch.
    pub grace: SignedDuration,
    /// Pods that may not leave can keep it for longer.
    pub can_be_held: bool,
    /// The phase in which it rests; nothing for an object that goes as well.
    pub rest: Option<Phase>,
}

/// A half-open stretch of time in which one thing is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: Timestamp,
    pub to: Timestamp,
    pub want: Want,
}

/// What was wanted of an object up to `end`, without gaps, no two neighbours alike.
pub fn stretches(trace: &Trace, key: &Key, end: Timestamp) -> Vec<Stretch> {
    let snapshots: Vec<_> = trace.snapshots(key).collect();
    let mut stretches = Vec::new();
    for (index, (from, snapshot)) in snapshots.iter().enumerate() {
        let to = snapshots.get(index + 1).map_or(end, |(next, _)| *next).min(end);
        match snapshot {
            Some(snapshot) => of_snapshot(snapshot, *from, to, &mut stretches),
            None => add(&mut stretches, Stretch { from: *from, to, want: Want::Whatever }),
        }
    }
    stretches
}

fn of_snapshot(snapshot: &Snapshot, from: Timestamp, to: Timestamp, stretches: &mut Vec<Stretch>) {
    let whole = |want| Stretch { from, to, want };
    let at_once = |rest| Want::Nothing(Removal { grace: SignedDuration::ZERO, can_be_held: false, rest });
    if snapshot.is_paused {
        return add(stretches, whole(Want::Whatever));
    }
    if snapshot.kill_switch {
        let rest = snapshot.deleted_at.is_none().then_some(Phase::Terminated);
        return add(stretches, whole(at_once(rest)));
    }
    if snapshot.is_reclaimed {
        return add(stretches, whole(at_once(None)));
    }
    let Some(spec) = &snapshot.spec else {
        return add(stretches, whole(Want::Whatever));
    };
    let gracefully = |rest| {
        Want::Nothing(Removal {
            grace: spec.handling.graceful_shutdown_timeout.min(spec.handling.node_drain_timeout),
            can_be_held: spec.handling.on_timeout == OnTimeout::Error,
            rest,
        })
    };
    if snapshot.deleted_at.is_some() {
        return add(stretches, whole(gracefully(None)));
    }
    let mut at = from;
    while at < to {
        let until = spec.plan().next_boundary(at).map_or(to, |boundary| boundary.min(to));
        let want = match spec.plan().at(at) {
            PlanState::InWindow | PlanState::LeadTime | PlanState::OverrideUp => {
                Want::Machine { join_timeout: spec.join_timeout }
            }
            PlanState::Disabled => gracefully(Some(Phase::Disabled)),
            PlanState::OverrideDown | PlanState::OutsideWindow => gracefully(Some(Phase::Inactive)),
        };
        add(stretches, Stretch { from: at, to: until, want });
        at = until;
    }
}

fn add(stretches: &mut Vec<Stretch>, stretch: Stretch) {
    match stretches.last_mut() {
        _ if stretch.from >= stretch.to => {}
        Some(last) if last.want == stretch.want && last.to == stretch.from => last.to = stretch.to,
        Some(_) | None => stretches.push(stretch),
    }
}
