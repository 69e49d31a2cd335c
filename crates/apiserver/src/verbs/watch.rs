//! WATCH: the changes since a resource version, and then all further changes.

use super::convert::to_served;
use super::read::Selection;
use super::{Call, read};
use crate::error::ApiError;
use crate::frontend::{Accept, Options, Reply, represent};
use crate::kinds::Resource;
use crate::object;
use crate::service_state::Shared;
use crate::state::State;
use crate::store::{Change, ChangeKind};
use crate::strategy;
use crate::watch_signals::WatchSignal;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The interval between bookmarks of a watch that requests them.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// The time before the end of a watch at which it gets its last bookmark, so that the next watch can resume
/// there.
const LAST_BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// The timeout of a watch that does not set one; a random part of up to the same length is added.
const SHORTEST_TIMEOUT_SECONDS: u64 = 1800;

/// A watch that was accepted and does not stream yet.
#[derive(Debug)]
pub(crate) struct WatchPlan {
    resource: Arc<Resource>,
    selection: Selection,
    accept: Accept,
    options: Options,
    /// The first events.
    initial: VecDeque<Bytes>,
    /// Changes up to this revision were sent, or are not requested.
    cursor: u64,
    timeout: Duration,
}

pub(super) fn watch(state: &mut State, call: &Call) -> Result<Reply, ApiError> {
    let selection = Selection::of(call)?;
    let version = call.options.resource_version.as_str();
    check_initial_events(call)?;
    if version.parse::<u64>().is_err() && !version.is_empty() {
        read::check_version_is_known(state, call)?;
    }
    let seconds = call
        .options
        .timeout_seconds
        .unwrap_or_else(|| SHORTEST_TIMEOUT_SECONDS + state.ids.below(SHORTEST_TIMEOUT_SECONDS));
    let mut plan = WatchPlan {
        resource: call.resource.clone(),
        selection,
        accept: call.accept.clone(),
        options: call.options.clone(),
        initial: VecDeque::new(),
        cursor: state.store.revision(),
        timeout: Duration::from_secs(seconds),
    };
    let wants_state = call.options.send_initial_events.unwrap_or(matches!(version, "" | "0"));
    if wants_state {
        plan.send_state(state);
    } else if !version.is_empty() && version != "0" {
        plan.cursor = version.parse().unwrap_or_default();
    }
    // A bookmark marks the end of the initial events, whether they were requested explicitly or by an empty
    // resource version.
    if wants_state && call.options.allow_bookmarks {
        let bookmark = plan.bookmark(state, true);
        plan.initial.push_back(bookmark);
    }
    Ok(Reply::watch(plan))
}

fn check_initial_events(call: &Call) -> Result<(), ApiError> {
    let options = &call.options;
    let problem = match (options.send_initial_events, options.resource_version_match.as_str()) {
        (None, "") | (Some(_), "NotOlderThan") => return Ok(()),
        (None, _) => "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        (Some(_), _) => "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    };
    let fault = crate::error::Fault::forbidden("resourceVersionMatch", problem);
    let subject = crate::error::Subject { group: "meta.k8s.io", kind: "ListOptions", name: "" };
    Err(ApiError::invalid(subject, &[fault]))
}

impl WatchPlan {
    fn send_state(&mut self, state: &State) {
        for stored in state.store.list(&self.resource.store, self.selection.namespace()) {
            let served = to_served(&self.resource, &stored);
            if self.selection.matches(&served) {
                let event = self.event(state, "ADDED", &served);
                self.initial.push_back(event);
            }
        }
    }

    fn event(&self, state: &State, kind: &str, served: &Value) -> Bytes {
        let object =
            represent(served.clone(), &self.resource, &self.accept, &self.options, state.clock.now());
        line(&json!({"type": kind, "object": object}))
    }

    fn bookmark(&self, state: &State, ends_initial_events: bool) -> Bytes {
        let mut object = strategy::zero(&self.resource);
        object["metadata"] = json!({"resourceVersion": self.cursor.max(1).to_string()});
        if ends_initial_events {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = represent(object, &self.resource, &self.accept, &self.options, state.clock.now());
        line(&json!({"type": "BOOKMARK", "object": object}))
    }

    /// The event of a change for this watch: an object that starts to match is added, and one that stops
    /// matching is deleted.
    fn event_for(&self, state: &State, change: &Change) -> Option<Bytes> {
        let after = to_served(&self.resource, &change.object);
        let was_selected = change
            .previous
            .as_ref()
            .is_some_and(|previous| self.selection.matches(&to_served(&self.resource, previous)));
        let is_selected = change.kind != ChangeKind::Deleted && self.selection.matches(&after);
        match (was_selected, is_selected) {
            (false, true) => Some(self.event(state, "ADDED", &after)),
            (true, true) => Some(self.event(state, "MODIFIED", &after)),
            (true, false) => {
                // The watcher gets the last state that matched, with the revision at which it stopped
                // matching.
                let mut last = to_served(&self.resource, change.previous.as_ref()?).into_owned();
                object::set_meta(&mut last, "resourceVersion", change.revision.to_string());
                Some(self.event(state, "DELETED", &last))
            }
            (false, false) => None,
        }
    }
}

/// A running watch.
pub(crate) struct WatchStream {
    shared: Arc<Shared>,
    plan: WatchPlan,
    signal: WatchSignal,
    ends_at: Instant,
    next_bookmark: Option<Instant>,
    is_bookmark_due: bool,
    /// The timer for the next bookmark or the end. It is kept between events, so that a busy watch does not
    /// set a timer for each.
    alarm: Pin<Box<Sleep>>,
    has_ended: bool,
}

impl WatchStream {
    pub(crate) fn new(shared: Arc<Shared>, plan: WatchPlan) -> Self {
        let signal = shared.signal(&plan.resource.store);
        let now = Instant::now();
        let ends_at = now + plan.timeout;
        let next_bookmark = next_bookmark(now, ends_at).filter(|_| plan.options.allow_bookmarks);
        let alarm = Box::pin(tokio::time::sleep_until(next_bookmark.unwrap_or(ends_at)));
        Self { shared, plan, signal, ends_at, next_bookmark, is_bookmark_due: false, alarm, has_ended: false }
    }

    /// The next line of the stream; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.plan.initial.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            self.collect();
            if self.plan.initial.is_empty() && !self.has_ended {
                self.wait().await;
            }
        }
    }

    fn collect(&mut self) {
        self.signal.clear();
        let state = self.shared.lock();
        match state.store.changes_since(&self.plan.resource.store, self.plan.cursor) {
            Ok(changes) => {
                for change in &changes {
                    if let Some(event) = self.plan.event_for(&state, change) {
                        self.plan.initial.push_back(event);
                    }
                    self.plan.cursor = change.revision;
                }
            }
            Err(too_old) => {
                let message = format!("too old resource version: {} ({})", self.plan.cursor, too_old.oldest);
                let status = ApiError::expired(message).to_status();
                self.plan.initial.push_back(line(&json!({"type": "ERROR", "object": status})));
                self.has_ended = true;
            }
        }
        // There are no more events of a kind that is no longer served.
        if state.kinds.by_store(&self.plan.resource.store).is_none() {
            self.has_ended = true;
        }
        if self.is_bookmark_due && !self.has_ended {
            self.is_bookmark_due = false;
            // All changes up to now were examined, including those of other kinds.
            self.plan.cursor = state.store.revision();
            let bookmark = self.plan.bookmark(&state, false);
            self.plan.initial.push_back(bookmark);
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            biased;
            () = self.signal.notified() => {}
            () = self.alarm.as_mut() => self.look_at_the_time(),
        }
    }

    fn look_at_the_time(&mut self) {
        let now = Instant::now();
        if now >= self.ends_at {
            self.has_ended = true;
            return;
        }
        if self.next_bookmark.is_some_and(|due| due <= now) {
            self.is_bookmark_due = true;
            self.next_bookmark = next_bookmark(now, self.ends_at);
        }
        self.alarm.as_mut().reset(self.next_bookmark.unwrap_or(self.ends_at));
    }
}

/// Bookmarks come every minute and once shortly before the end, and not after that one.
fn next_bookmark(now: Instant, ends_at: Instant) -> Option<Instant> {
    let last = ends_at.checked_sub(LAST_BOOKMARK_BEFORE_END).filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARK_INTERVAL))
}

fn line(event: &Value) -> Bytes {
    let mut text = event.to_string();
    text.push('\n');
    text.into()
}
