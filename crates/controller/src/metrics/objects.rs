//! The objects whose series are set, and removed when an object is gone.

use super::drains::Drains;
use super::families::{Families, LENT_SECONDS, LENT_SECONDS_HELP};
use five_spot_api::Phase;
use five_spot_api::event::EventReason;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::view::Observed;
use five_spot_core::Decision;
use five_spot_core::action::{Action, Event};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The shortest time between two updates of the event of a fault. The retries of a fault that lasts are further apart;
/// this is for one that is looked at for other reasons as well.
const BETWEEN_REPEATS: SignedDuration = SignedDuration::from_secs(30);

/// The usual length of a line about one object on the page.
const BYTES_OF_LINE: usize = 96;

/// An event, and how often what it announces has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// The event.
    pub(crate) event: Event,
    /// The number of times.
    pub(crate) times: u32,
}

/// The facts about one object.
#[derive(Debug, Default)]
pub(super) struct Known {
    phase: Option<Phase>,
    /// It has `killIfCommands`, so that an agent belongs on its Node.
    needs_agent: bool,
    /// It is Active, and no Node of it is Ready.
    without_node: bool,
    next_change: Option<Timestamp>,
    /// The seconds for which it has been lent.
    lent: f64,
    /// Up to when that has been counted; absent while it is not lent.
    lent_until: Option<Timestamp>,
    pub(super) drains: Drains,
    /// Boxed, because few objects fail, and there is one of these for each.
    failing: Option<Box<(Repeat, Timestamp)>>,
}

impl Known {
    /// Counts the time up to now that it has been lent. A clock that was put back lends nothing.
    fn count_lent(&mut self, now: Option<Timestamp>) {
        if let (Some(until), Some(now)) = (&mut self.lent_until, now) {
            self.lent += now.duration_since(*until).as_secs_f64().max(0.0);
            *until = now;
        }
    }

    /// Counts a fault that is still there.
    pub(super) fn repeat(&mut self, now: Timestamp) -> Option<Repeat> {
        let (repeat, last) = self.failing.as_deref_mut()?;
        if now.duration_since(*last) < BETWEEN_REPEATS {
            return None;
        }
        repeat.times = repeat.times.saturating_add(1);
        *last = now;
        Some(repeat.clone())
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Boxed, because a map has room for nearly twice as many as it holds.
    known: BTreeMap<ObjectKey, Box<Known>>,
}

impl Objects {
    pub(super) fn get(&mut self, key: &ObjectKey) -> Option<&mut Known> {
        self.known.get_mut(key).map(Box::as_mut)
    }

    pub(super) fn phase(&self, key: &ObjectKey) -> Option<Phase> {
        self.known.get(key)?.phase
    }

    /// The time at which a machine becomes wanted or unwanted next.
    pub(super) fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        self.known.values().filter_map(|known| known.next_change).filter(|time| *time > now).min()
    }

    /// The objects on whose Nodes an agent belongs.
    pub(super) fn with_agents(&self) -> Vec<ObjectKey> {
        self.known.iter().filter(|(_, known)| known.needs_agent).map(|(key, _)| key.clone()).collect()
    }

    /// Takes over what a decision says.
    pub(super) fn report(
        &mut self,
        families: &Families,
        key: &ObjectKey,
        observed: &Observed,
        decision: &Decision,
        now: Option<Timestamp>,
    ) -> &mut Known {
        let known = self.known.entry(key.clone()).or_default();
        let status = &decision.status;
        move_phase(families, known.phase, status.phase);
        known.phase = status.phase;
        let without_node = status.phase == Some(Phase::Active) && !decision.is_lent;
        families.machines_without_node.add(change_of(known.without_node, without_node));
        known.without_node = without_node;
        let changes = [&status.next_activation, &status.next_cleanup];
        known.next_change = changes.into_iter().flatten().map(|time| time.0).min();
        known.count_lent(now);
        known.lent_until = now.filter(|_| decision.is_lent);
        let labels = [&*key.namespace, &*key.name];
        known.needs_agent = observed.spec.as_ref().is_ok_and(|spec| !spec.kill_if_commands.is_empty());
        if known.needs_agent {
            families.emergency_reclaims.with_label_values(&labels);
            families.rapid_re_reclaims.with_label_values(&labels);
        }
        for event in &decision.events {
            count_event(families, event.reason, &labels);
            if event.reason == EventReason::ReconcileFailed {
                known.failing = now.map(|now| Box::new((Repeat { event: event.clone(), times: 1 }, now)));
            }
        }
        if status.phase != Some(Phase::Error) {
            known.failing = None;
        }
        known
    }

    /// Writes the time for which each machine has been lent, in the text format. The families of other metrics keep far more of
    /// each series than the number that they export, and their page is made of a copy of all that. Names of objects have no
    /// characters that would have to be escaped.
    pub(super) fn write_lent(&mut self, now: Option<Timestamp>, page: &mut String) {
        if self.known.is_empty() {
            return;
        }
        page.reserve(self.known.len() * BYTES_OF_LINE);
        let _ = writeln!(page, "# HELP {LENT_SECONDS} {LENT_SECONDS_HELP}\n# TYPE {LENT_SECONDS} counter");
        for (ObjectKey { namespace, name }, known) in &mut self.known {
            known.count_lent(now);
            let _ =
                writeln!(page, "{LENT_SECONDS}{{name=\"{name}\",namespace=\"{namespace}\"}} {}", known.lent);
        }
    }

    pub(super) fn forget_all(&mut self, families: &Families) {
        let keys: Vec<ObjectKey> = self.known.keys().cloned().collect();
        for key in &keys {
            self.forget(families, key);
        }
    }

    pub(super) fn forget(&mut self, families: &Families, key: &ObjectKey) {
        if let Some(known) = self.known.remove(key) {
            move_phase(families, known.phase, None);
            families.machines_without_node.add(change_of(known.without_node, false));
        }
        let labels = [&*key.namespace, &*key.name];
        for series in [&families.emergency_reclaims, &families.rapid_re_reclaims] {
            // It fails only where there never was one.
            let _ = series.remove_label_values(&labels);
        }
    }
}

/// By how much a count of objects changes when one is no longer, or from now on, counted in it.
fn change_of(before: bool, now: bool) -> f64 {
    f64::from(u8::from(now)) - f64::from(u8::from(before))
}

fn move_phase(families: &Families, from: Option<Phase>, to: Option<Phase>) {
    for (phase, change) in [(from, -1.0), (to, 1.0)] {
        if let Some(phase) = phase {
            families.machines_by_phase.with_label_values(&[phase.as_str()]).add(change);
        }
        if phase == Some(Phase::Active) {
            families.machines_active.add(change);
        }
    }
}

fn count_event(families: &Families, reason: EventReason, labels: &[&str; 2]) {
    match reason {
        EventReason::KillSwitchActivated => families.kill_switch_activations.inc(),
        EventReason::EmergencyReclaim => families.emergency_reclaims.with_label_values(labels).inc(),
        EventReason::RapidReReclaim => families.rapid_re_reclaims.with_label_values(labels).inc(),
        EventReason::FinalizerCleanupTimedOut => families.finalizer_cleanup_timeouts.inc(),
        EventReason::MachineCreated
        | EventReason::ScheduleActive
        | EventReason::ScheduleInactive
        | EventReason::GracePeriodActive
        | EventReason::NodeDraining
        | EventReason::NodeDrained
        | EventReason::MachineDeleted
        | EventReason::ScheduleDisabled
        | EventReason::Recovered
        | EventReason::ReconcileFailed
        | EventReason::EmergencyReclaimDisabledSchedule
        | EventReason::NodeLost
        | EventReason::NodeLeftBehind
        | EventReason::MachineInUse
        | EventReason::TooManyRemovals
        | EventReason::DrainForced => {}
    }
}

/// True if a decision ends with the Machine's deletion.
pub(super) fn deletes_machine(decision: &Decision) -> bool {
    decision.actions.iter().any(|action| matches!(action, Action::DeleteMachine { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::core::Collector;
    use prometheus::{CounterVec, Opts, TextEncoder};

    #[test]
    fn time_lent_is_written_as_the_encoder_writes_it() {
        let lent = [("shop", "b", 3600.0), ("shop", "a", 0.25), ("desks", "c-1.d", 0.0), ("shop", "z", 1e17)];
        let known = lent.map(|(namespace, name, lent)| {
            (ObjectKey::new(namespace, name), Box::new(Known { lent, ..Known::default() }))
        });
        let mut page = String::new();
        Objects { known: known.into() }.write_lent(None, &mut page);
        let series = CounterVec::new(Opts::new(LENT_SECONDS, LENT_SECONDS_HELP), &["namespace", "name"])
            .expect("valid");
        for (namespace, name, lent) in lent {
            series.with_label_values(&[namespace, name]).inc_by(lent);
        }
        let encoded = TextEncoder::new().encode_to_string(&series.collect()).expect("valid");
        let sorted = |page: &str| {
            let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
            lines[2..].sort();
            lines
        };
        assert_eq!(sorted(&page), sorted(&encoded));
        let names: Vec<&str> = page.lines().skip(2).filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(names, ["c-1.d", "a", "b", "z"], "in the order of their keys");
    }

    #[test]
    fn without_objects_there_is_no_time_lent() {
        let mut page = String::new();
        Objects::default().write_lent(None, &mut page);
        assert_eq!(page, "");
    }
}
