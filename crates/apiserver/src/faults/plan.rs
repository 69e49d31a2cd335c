//! The rules of fault injection, and the record of requests.

use crate::clock::Clock;
use crate::ids::Ids;
use http::{Method, StatusCode};
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A fault in a request.
#[derive(Clone, Debug, PartialEq)]
pub enum InjectedFault {
    /// The request never reaches the server; the client gets a connection error.
    DropBefore,
    /// The server executes the request; the client gets a connection error.
    DropAfter,
    /// The request arrives late.
    Delay(Duration),
    /// The server refuses, with a `Retry-After` header if it has seconds.
    Refuse(StatusCode, Option<u64>),
    /// The server refuses with a message from a third party, such as an admission webhook or the author of a
    /// budget.
    RefuseSaying(StatusCode, String),
    /// A proxy answers instead of the server, with 404.
    Misroute,
    /// The request is lost, and there is no response.
    Hang,
    /// A read is answered from this many changes ago.
    StaleRead(u64),
    /// A read is answered from the state just before the last write through this service.
    StaleBeforeOwnWrite,
    /// A fault in a watch.
    Watch(WatchFault),
}

/// A fault in a watch. Events are counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFault {
    /// This event is lost.
    LoseEvent(u64),
    /// This event and the following ones are late.
    DelayEvent(u64, Duration),
    /// The stream ends before this event.
    CloseBefore(u64),
    /// The stream delivers nothing from this event on.
    HangBefore(u64),
    /// Before this event, the server reports that the resource version is too old and ends the stream.
    GoneBefore(u64),
}

/// The kinds of requests that rules distinguish.
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

/// The choice among the requests that a rule selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// One of them; the first is 0.
    Nth(u64),
    /// This many per thousand, chosen by the seed.
    PerMille(u64),
    /// All of them between two instants.
    Between(Timestamp, Timestamp),
}

/// A fault and the requests that it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// The kind of requests.
    pub kind: RequestKind,
    /// A part of their path, such as `/machines`; empty for all.
    pub path: String,
    /// The choice among these requests.
    pub trigger: Trigger,
    /// The fault.
    pub fault: InjectedFault,
}

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The time at which it arrived.
    pub time: Timestamp,
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub path: String,
    /// The outcome.
    pub outcome: RequestOutcome,
    /// For a watch, the times at which its events were delivered, including bookmarks.
    pub events: Vec<Timestamp>,
}

impl Seen {
    /// Returns true if the request is a write.
    pub fn is_write(&self) -> bool {
        self.kind() == RequestKind::Write
    }

    /// The kind of the request.
    pub fn kind(&self) -> RequestKind {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        RequestKind::of(&self.method, query)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestOutcome {
    /// The request was answered with this status.
    Answered(StatusCode),
    /// The request had this fault.
    Faulted(InjectedFault),
    /// The request is in progress.
    Pending,
}

/// The rules of a run and the record of its requests. Clones share both.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    inner: Arc<Mutex<Inner>>,
    clock: Clock,
}

#[derive(Debug)]
struct Inner {
    rules: Vec<(FaultRule, u64)>,
    chance: Ids,
    seen: Vec<Seen>,
}

impl FaultPlan {
    /// Creates a plan without rules.
    pub fn new(clock: Clock, seed: u64) -> Self {
        let inner = Inner { rules: Vec::new(), chance: Ids::new(seed), seen: Vec::new() };
        Self { inner: Arc::new(Mutex::new(inner)), clock }
    }

    /// Adds a rule, which counts requests from now on.
    pub fn add(&self, rule: FaultRule) {
        self.lock().rules.push((rule, 0));
    }

    /// Removes all rules, so that there are no more faults.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// All recorded requests, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// Records a request and returns its fault, if any. The number is for [`FaultPlan::answered`].
    pub(super) fn admit(&self, method: &Method, path: &str, query: &str) -> (usize, Option<InjectedFault>) {
        let kind = RequestKind::of(method, query);
        let now = self.clock.now();
        let mut inner = self.lock();
        let fault = inner.decide(kind, path, now);
        let outcome = fault.clone().map_or(RequestOutcome::Pending, RequestOutcome::Faulted);
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        inner.seen.push(Seen { time: now, method: method.clone(), path, outcome, events: Vec::new() });
        (inner.seen.len() - 1, fault)
    }

    /// Records that an event of a watch was delivered.
    pub(super) fn delivered(&self, number: usize) {
        let now = self.clock.now();
        if let Some(seen) = self.lock().seen.get_mut(number) {
            seen.events.push(now);
        }
    }

    pub(super) fn answered(&self, number: usize, status: StatusCode) {
        if let Some(seen) = self.lock().seen.get_mut(number)
            && seen.outcome == RequestOutcome::Pending
        {
            seen.outcome = RequestOutcome::Answered(status);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Every rule counts the requests that it selects; the first rule that applies determines the fault.
    fn decide(&mut self, kind: RequestKind, path: &str, now: Timestamp) -> Option<InjectedFault> {
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
