//! Events about an object.

use super::facts::{Filter, ResourceId};
use super::live::Live;
use super::walk::Walk;
use super::words;
use jiff::{SignedDuration, Timestamp};

/// The number of events of one object that are read.
const LIMIT: u32 = 100;

/// The number that is shown.
const SHOWN: usize = 4;

/// Older events say little about the present. API servers forget them after an hour by default.
const RECENT: SignedDuration = SignedDuration::from_hours(2);

/// An event.
#[derive(Clone, Debug)]
pub(super) struct Event<'f> {
    pub(super) reason: &'f str,
    pub(super) message: &'f str,
    pub(super) at: Option<Timestamp>,
    count: i64,
}

/// The recent warnings about an object, the newest first; `None` while they are unknown.
pub(super) fn warnings<'f>(walk: &mut Walk<'f>, object: Live<'_>) -> Option<Vec<Event<'f>>> {
    let uid = object.uid();
    if uid.is_empty() {
        return Some(Vec::new());
    }
    let filter = Filter::Fields(format!("involvedObject.uid={uid}"));
    // Events about cluster-scoped objects are in the namespace `default`.
    let namespace = if object.namespace().is_empty() { "default" } else { object.namespace() };
    let now = walk.now;
    let Ok(listed) = walk.list(ResourceId::kind("", "Event"), Some(namespace), filter, LIMIT)? else {
        return Some(Vec::new());
    };
    let mut events: Vec<Event<'f>> = listed
        .items
        .iter()
        .filter(|event| event["type"] == "Warning")
        .map(|event| read(Live(event)))
        .collect();
    events.retain(|event| event.at.is_none_or(|at| now.duration_since(at) < RECENT));
    events.sort_by_key(|event| std::cmp::Reverse(event.at));
    events.dedup_by(|one, other| one.reason == other.reason && one.message == other.message);
    Some(events)
}

fn read(event: Live<'_>) -> Event<'_> {
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let count = |path| event.0.pointer(path).and_then(serde_json::Value::as_i64);
    Event {
        reason: event.text("/reason"),
        message: event.text("/message"),
        at: times.into_iter().find_map(|path| event.time(path)),
        count: count("/series/count").or_else(|| count("/count")).unwrap_or(1),
    }
}

impl Event<'_> {
    /// As evidence: `event FailedMount, 3 times, last at ...: ...`.
    pub(super) fn in_words(&self, now: Timestamp) -> String {
        let times = if self.count > 1 { format!(", {} times", self.count) } else { String::new() };
        let at = self.at.map(|at| format!(", {}", words::ago(at, now))).unwrap_or_default();
        words::quoted(&format!("event {}{times}{at}: {}", self.reason, self.message))
    }
}

/// The newest warnings as evidence.
pub(super) fn as_evidence(events: &[Event<'_>], now: Timestamp) -> Vec<String> {
    events.iter().take(SHOWN).map(|event| event.in_words(now)).collect()
}
