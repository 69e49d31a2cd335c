//! The brake: counts the removals that were not planned, over all objects of this instance, and holds further ones when
//! there are too many. The rule is [`five_spot_core::may_begin`]; here is what it is applied to.

mod clock_trust;
#[cfg(test)]
mod tests;

use crate::leader::{LeaseClock, TokioClock};
use clock_trust::ClockTrust;
use five_spot_cluster::ObjectKey;
use five_spot_cluster::cache::Caches;
use five_spot_cluster::view::Observed;
use five_spot_core::world::{Brake as Facts, RemovalGate};
use five_spot_core::{
    Decision, RemovalLimit, UNPLANNED_REMOVALS_WINDOW, Unplanned, UnplannedRemovals, may_begin,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The settings of the brake.
#[derive(Clone)]
pub struct BrakeSettings {
    /// `--max-unplanned-removals`.
    pub limit: RemovalLimit,
    /// The clock with which jumps of the wall clock are found.
    pub clock: Arc<dyn LeaseClock>,
}

impl Default for BrakeSettings {
    fn default() -> Self {
        Self { limit: RemovalLimit::default(), clock: Arc::new(TokioClock::default()) }
    }
}

impl fmt::Debug for BrakeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrakeSettings").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Returns true if this instance works on an object.
pub(crate) type Owns = Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// The brake of one instance.
pub(crate) struct RemovalBrake {
    limit: RemovalLimit,
    clock: ClockTrust,
    owns: Owns,
    counted: Mutex<Counted>,
}

/// The unplanned removals of the objects of this instance.
#[derive(Debug, Default)]
struct Counted {
    /// True once the recorded ones were read.
    is_loaded: bool,
    held: BTreeSet<ObjectKey>,
    begun: BTreeMap<ObjectKey, Timestamp>,
    /// The number of lent machines before the first of them began; absent until it is needed.
    lent: Option<usize>,
}

impl RemovalBrake {
    pub(crate) fn new(settings: BrakeSettings, owns: Owns) -> Self {
        let (limit, clock) = (settings.limit, ClockTrust::new(settings.clock));
        Self { limit, clock, owns, counted: Mutex::default() }
    }

    /// Decides about an object. A removal that is not planned is asked for first.
    pub(crate) fn decide(&self, caches: &Caches, key: &ObjectKey, observed: &mut Observed) -> Decision {
        let now = caches.now();
        let clock_is_trusted = self.clock.is_trusted(now, caches.clock_skew());
        observed.world.brake = Facts { clock_is_trusted, gate: RemovalGate::Unasked };
        let decision = observed.decide(now);
        if decision.unplanned != Some(Unplanned::Asks) {
            return decision;
        }
        observed.world.brake.gate =
            if self.ask(caches, key, now) { RemovalGate::Open } else { RemovalGate::Closed };
        observed.decide(now)
    }

    /// Returns true if the removal of an object may begin, and counts it.
    fn ask(&self, caches: &Caches, key: &ObjectKey, now: Timestamp) -> bool {
        let mut counted = self.lock();
        if !counted.is_loaded {
            counted.load(caches, &self.owns);
        }
        let since = now.saturating_sub(UNPLANNED_REMOVALS_WINDOW).unwrap_or(Timestamp::MIN);
        // A time that is still to come was recorded before the clock was set back.
        counted.begun.retain(|_, begun| *begun > since);
        if counted.begun.contains_key(key) {
            return true;
        }
        if counted.begun.is_empty() {
            counted.lent = None;
        }
        let lent = counted.lent.unwrap_or_else(|| {
            // The machines of some that began before this process counted may be gone.
            let gone = counted.begun.keys().filter(|object| !caches.is_lent(object)).count();
            caches.lent(|object| (self.owns)(object)) + gone
        });
        counted.lent = Some(lent);
        let removals = UnplannedRemovals { lent, held: counted.held.len(), begun: counted.begun.len() };
        let is_allowed = caches.allow_removals().is_some_and(|until| now < until);
        let begins = is_allowed || may_begin(self.limit, removals);
        if begins {
            counted.held.remove(key);
            counted.begun.insert(key.clone(), now);
        } else if counted.held.insert(key.clone()) && removals.held == 0 {
            tracing::warn!(
                max_unplanned_removals = %self.limit,
                begun = removals.begun,
                lent = removals.lent,
                "Too many machines would be removed although neither their schedule nor their spec says so; holding all \
                 further ones. Compare the clock, the time-zone data and the calendars with what they should be"
            );
        }
        begins
    }

    /// Notes what is on record about an object. Returns the number of removals that are held.
    pub(crate) fn note(&self, key: &ObjectKey, decision: &Decision) -> usize {
        let mut counted = self.lock();
        counted.note(
            key,
            decision
                .status
                .unplanned_removal
                .as_ref()
                .map(|removal| removal.begun_at.as_ref().map(|time| time.0)),
        );
        counted.held.len()
    }

    /// Forgets an object that is gone, or that another instance works on. Returns the number of removals that are held.
    pub(crate) fn forget(&self, key: &ObjectKey) -> usize {
        let mut counted = self.lock();
        counted.note(key, None);
        counted.held.len()
    }

    /// Forgets everything: what is on record is read again when it is needed.
    pub(crate) fn reset(&self) {
        *self.lock() = Counted::default();
    }

    /// Compares the clocks, and returns the objects to look at again if the clock has become trusted since.
    pub(crate) fn check_clock(&self, caches: &Caches) -> Vec<ObjectKey> {
        if !self.clock.has_recovered(caches.now(), caches.clock_skew()) {
            return Vec::new();
        }
        self.lock().held.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        // Every change is one insertion or removal.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn load(&mut self, caches: &Caches, owns: &Owns) {
        for (key, begun) in caches.unplanned_removals().into_iter().filter(|(key, _)| owns(key)) {
            // What was granted since is newer than what the caches show.
            if !self.begun.contains_key(&key) {
                self.note(&key, Some(begun));
            }
        }
        self.is_loaded = true;
    }

    #[expect(
        clippy::option_option,
        reason = "no unplanned removal, one that is held, and one that has begun"
    )]
    fn note(&mut self, key: &ObjectKey, removal: Option<Option<Timestamp>>) {
        match removal {
            Some(Some(begun)) => {
                self.held.remove(key);
                self.begun.insert(key.clone(), begun);
            }
            Some(None) => {
                self.held.insert(key.clone());
            }
            None => {
                self.held.remove(key);
                self.begun.remove(key);
            }
        }
    }
}
