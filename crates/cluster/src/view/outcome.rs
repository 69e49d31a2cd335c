//! What is remembered of how a reconcile went.

use crate::cache::fleet::Fleet;
use crate::execute::Setback;
use crate::transport::key::ObjectKey;
use crate::view::observe::{Observed, workload_of};
use five_spot_api::names;
use five_spot_core::backoff;
use five_spot_core::text;
use five_spot_core::world::{Failure, Failures};
use jiff::{SignedDuration, Timestamp};

/// How long an object may be on its way without news before what is known of it is compared with the API server. A
/// watch loses nothing by design; what lies between it and us may.
const LONGEST_WITHOUT_NEWS: SignedDuration = SignedDuration::from_mins(5);

/// The same while a person waits for the machine: a lost event must not cost its owner a minute.
const LONGEST_IN_EMERGENCY: SignedDuration = SignedDuration::from_secs(10);

/// Whether a person waits for the machine of an object; the later is the more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Emergency {
    /// Nobody does.
    #[default]
    None,
    /// Its owner wants it back.
    Reclaim,
    /// Its kill switch is on.
    KillSwitch,
}

/// How urgent an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// Whether a person waits for the machine.
    pub emergency: Emergency,
    /// `spec.priority`.
    pub priority: u8,
}

/// A failure that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many failures in a row came before this one.
    pub retry_count: u32,
    /// How long until the next attempt.
    pub backoff: SignedDuration,
}

impl Fleet {
    /// How urgent an object is, as far as the shelves tell.
    pub fn urgency(&self, key: &ObjectKey) -> Urgency {
        let inner = &self.inner;
        let Some(object) = inner.objects.view(key) else {
            return Urgency { emergency: Emergency::None, priority: 0 };
        };
        let (handling, priority) = match &object.spec {
            Ok(spec) => (spec.handling, spec.priority),
            Err(spec) => (spec.handling, 50),
        };
        let machine = inner.machines.view(&key.beside(names::machine(&key.name)));
        let node = machine.as_ref().and_then(|machine| machine.node.as_ref());
        let cluster = workload_of(key, &object);
        let reclaimed =
            object.record.is_reclaimed || node.is_some_and(|node| inner.is_reclaimed(&cluster, node));
        let emergency = match (handling.kill_switch && machine.is_some(), reclaimed) {
            (true, _) => Emergency::KillSwitch,
            (false, true) => Emergency::Reclaim,
            (false, false) => Emergency::None,
        };
        Urgency { emergency, priority }
    }

    fn is_emergency(&self, key: &ObjectKey) -> bool {
        self.urgency(key).emergency != Emergency::None
    }

    /// Watches the pods of an object's node from now on, or no more.
    pub fn watch_pods(&self, observed: &Observed, wanted: bool) {
        let (Some(link), Some(node)) = (&observed.link, observed.world.node.found()) else { return };
        if wanted {
            let key = ObjectKey::new(&*observed.world.object.namespace, &*observed.world.object.name);
            let Some(object) = self.inner.objects.view(&key) else { return };
            link.pods(&node.name, &self.inner.tell_node(&workload_of(&key, &object)));
        } else {
            link.forget_pods(&node.name);
            let key = ObjectKey::new(&*observed.world.object.namespace, &*observed.world.object.name);
            self.inner.remember(&key, |memory| {
                memory.drain_rules = None;
                memory.evictions.clear();
                memory.left.clear();
            });
        }
    }

    /// Everything went well. True if it had not before, so that what is reported has to be put right.
    pub fn succeeded(&self, key: &ObjectKey) -> bool {
        self.inner.remember(key, |memory| std::mem::take(&mut memory.failures) != Failures::default())
    }

    /// Something went wrong, and will be tried again.
    pub fn failed(&self, key: &ObjectKey, setback: &Setback, now: Timestamp) -> Retry {
        let delay = if self.is_emergency(key) { backoff::urgent_delay } else { backoff::delay };
        self.inner.remember(key, |memory| {
            let retry = Retry { retry_count: memory.failures.count, backoff: delay(memory.failures.count) };
            memory.failures = Failures {
                count: memory.failures.count.saturating_add(1),
                last: Some(Failure {
                    message: text::bounded(&setback.to_string(), text::MAX_MESSAGE).into_owned(),
                    refused: setback.error.is_refused(),
                    taints: setback.taints,
                    retry_at: now.saturating_add(retry.backoff).unwrap_or(Timestamp::MAX),
                }),
            };
            retry
        })
    }

    /// A decision has found a fault, or none. Returns when to look at one again that nothing may tell of.
    pub fn found_fault(&self, key: &ObjectKey, is_faulty: bool) -> Option<Retry> {
        self.inner.remember(key, |memory| {
            if !is_faulty {
                memory.faults = 0;
                return None;
            }
            let retry = Retry { retry_count: memory.faults, backoff: backoff::delay(memory.faults) };
            memory.faults = memory.faults.saturating_add(1);
            Some(retry)
        })
    }

    /// Whether an object has been on its way for so long without news that a lost one has to be reckoned with, or
    /// nothing about it has been confirmed since this instance became the leader.
    pub fn lacks_news(&self, key: &ObjectKey, now: Timestamp) -> bool {
        let confirmed_in_term = self.inner.recall(key, |memory| memory.confirmed_in_term).unwrap_or(0);
        if confirmed_in_term != self.inner.term() {
            return true;
        }
        self.inner.recall(key, |memory| memory.compare_at).flatten().is_some_and(|time| time <= now)
    }

    /// Notes whether an object is on its way. Returns when to compare what is known with the API server then.
    pub fn on_its_way(&self, key: &ObjectKey, moving: bool, now: Timestamp) -> Option<Timestamp> {
        let longest = if self.is_emergency(key) { LONGEST_IN_EMERGENCY } else { LONGEST_WITHOUT_NEWS };
        self.inner.remember(key, |memory| {
            let next = now.saturating_add(longest).unwrap_or(Timestamp::MAX);
            // One that lies further ahead comes from before the clock was put back.
            let due = memory.compare_at.filter(|time| *time > now && *time <= next);
            memory.compare_at = moving.then(|| due.unwrap_or(next));
            memory.compare_at
        })
    }

    /// Counts reconciles that each left something to do at once; zero begins anew.
    pub fn count_round(&self, key: &ObjectKey, unsettled: bool) -> u32 {
        self.inner.remember(key, |memory| {
            memory.rounds = if unsettled { memory.rounds.saturating_add(1) } else { 0 };
            memory.rounds
        })
    }

    /// Whether there is such an object.
    pub fn knows(&self, key: &ObjectKey) -> bool {
        self.inner.objects.get(key).is_some()
    }

    /// Forgets an object that is gone, and stops to watch what only it needed.
    pub fn forget(&self, key: &ObjectKey) {
        self.inner.forget(key);
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.inner.connection.now()
    }
}
