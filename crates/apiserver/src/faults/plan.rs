//! Which request meets which fault.

use crate::clock::Clock;
use crate::ids::Ids;
use http::{Method, StatusCode};
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A fault of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The request never reaches the server; the client sees a broken connection.
    DropBefore,
    /// The server carries the request out; the client sees a broken connection.
    DropAfter,
    /// The request arrives late.
    Delay(Duration),
    /// The server refuses, with `Retry-After` if it names seconds.
    Refuse(StatusCode, Option<u64>),
    /// The server refuses with a text of somebody else's: an admission webhook, or whoever wrote a budget.
    RefuseSaying(StatusCode, String),
    /// Somebody on the way answers in the server's place: there is no such page.
    Misroute,
    /// The answer never comes, and neither does the request.
    Hang,
    /// A read is answered from this many changes ago.
    StaleRead(u64),
    /// A read is answered from just before the last write that came through this door.
    StaleBeforeOwnWrite,
    /// A watch goes wrong.
    Watch(WatchFault),
}

/// A fault of a watch. Events are counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// This event is never seen.
    LoseEvent(u64),
    /// This event, and what follows it, comes late.
    DelayEvent(u64, Duration),
    /// The stream ends before this event.
    CloseBefore(u64),
    /// The stream is silent from this event on.
    HangBefore(u64),
    /// Before this event the server says that the version is too old, and ends.
    GoneBefore(u64),
}

/// The kinds of requests that a rule tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// GET of an object or a list.
    Read,
    /// POST, PUT, PATCH, DELETE.
    Write,
    /// A watch.
    Watch,
}

impl RequestKind {
    pub(super) fn of(method: &Method, query: &str) -> Self {
        if *method != Method::GET {
            return Self::Write;
        }
        let is_watch = query.split('&').any(|pair| matches!(pair, "watch" | "watch=1" | "watch=true"));
        if is_watch { Self::Watch } else { Self::Read }
    }
}

/// The choice among the requests that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// On one of them: the first is 0.
    Nth(u64),
    /// On this many of a thousand, by the seed.
    PerMille(u64),
    /// On all of them between two instants.
    Between(Timestamp, Timestamp),
}

/// One fault, and the requests that it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Which kind of requests.
    pub kind: RequestKind,
    /// A part of their path, such as `/machines`; empty for all.
    pub path: String,
    /// When.
    pub trigger: Trigger,
    /// The fault.
    pub fault: Fault,
}

/// A request that came to the door.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The time of its arrival.
    pub time: Timestamp,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// The outcome.
    pub outcome: Outcome,
    /// If it is a watch, when each of its events came out of this door, bookmarks included.
    pub events: Vec<Timestamp>,
}

impl Seen {
    /// True if the request would change something.
    pub fn is_write(&self) -> bool {
        self.kind() == RequestKind::Write
    }

    /// Which kind of request it is.
    pub fn kind(&self) -> RequestKind {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        RequestKind::of(&self.method, query)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was answered with this status.
    Answered(StatusCode),
    /// It met this fault.
    Faulted(Fault),
    /// It is on its way.
    Pending,
}

/// The rules of one run, and the record of it. Clones share both.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    inner: Arc<Mutex<Inner>>,
    clock: Clock,
}

#[derive(Debug)]
struct Inner {
    rules: Vec<(Rule, u64)>,
    chance: Ids,
    seen: Vec<Seen>,
}

impl FaultPlan {
    /// No faults yet.
    pub fn new(clock: Clock, seed: u64) -> Self {
        let inner = Inner { rules: Vec::new(), chance: Ids::new(seed), seen: Vec::new() };
        Self { inner: Arc::new(Mutex::new(inner)), clock }
    }

    /// Adds a rule; its count begins now.
    pub fn add(&self, rule: Rule) {
        self.lock().rules.push((rule, 0));
    }

    /// Forgets all rules: from now on everything works.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// Everything that came to the door, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// Writes a request down and decides its fate. The number is for [`FaultPlan::answered`].
    pub(super) fn admit(&self, method: &Method, path: &str, query: &str) -> (usize, Option<Fault>) {
        let kind = RequestKind::of(method, query);
        let now = self.clock.now();
        let mut inner = self.lock();
        let fault = inner.decide(kind, path, now);
        let outcome = fault.clone().map_or(Outcome::Pending, Outcome::Faulted);
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        inner.seen.push(Seen { time: now, method: method.clone(), path, outcome, events: Vec::new() });
        (inner.seen.len() - 1, fault)
    }

    /// An event of a watch came out of the door.
    pub(super) fn told(&self, number: usize) {
        let now = self.clock.now();
        if let Some(seen) = self.lock().seen.get_mut(number) {
            seen.events.push(now);
        }
    }

    pub(super) fn answered(&self, number: usize, status: StatusCode) {
        if let Some(seen) = self.lock().seen.get_mut(number)
            && seen.outcome == Outcome::Pending
        {
            seen.outcome = Outcome::Answered(status);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Every rule counts every request that it is about; the first rule that acts decides.
    fn decide(&mut self, kind: RequestKind, path: &str, now: Timestamp) -> Option<Fault> {
        let mut decided = None;
        for (rule, count) in &mut self.rules {
            if rule.kind != kind || !path.contains(&rule.path) {
                continue;
            }
            let number = *count;
            *count += 1;
            let acts = match rule.trigger {
                Trigger::Nth(wanted) => wanted == number,
                Trigger::PerMille(share) => self.chance.chance(share),
                Trigger::Between(start, end) => start <= now && now < end,
            };
            if acts && decided.is_none() {
                decided = Some(rule.fault.clone());
            }
        }
        decided
    }
}
