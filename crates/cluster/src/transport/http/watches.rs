//! Watches: when each may start again, and when each last received something.

use super::answer::{Line, next_frame};
use super::limits::LEAST_WATCH_BYTES;
use super::{Transport, TransportError};
use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::BoxError;

/// The same watch starts at most once a second. The watcher of `kube` backs off after an error, but if the server
/// ends a watch at once without an error, it starts the watch again at once: 19,000 times a second were measured.
const BETWEEN_STARTS: Duration = Duration::from_secs(1);

/// The time that a watch may take to be opened again before it counts as disconnected: the server regularly ends every
/// watch after a few minutes.
const REOPENING: Duration = Duration::from_secs(10);

/// The same for a watch that has failed. Pings need up to 40 s to detect that a server is frozen, and 45 s after it
/// froze the watch must not count as connected.
const REOPENING_AFTER_FAILURE: Duration = Duration::from_secs(3);

/// The time for which a watch that has ended is remembered.
const REMEMBERED: Duration = Duration::from_mins(15);

/// The status of a watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchState {
    /// It is open, or was until a moment ago.
    pub connected: bool,
    /// The time for which it has hung: it is open, or was opened repeatedly, and nothing arrives. A server that is
    /// unreachable or refuses the watch is noticed at once and does not count as hanging. Absent if the watch was never
    /// tried.
    pub idle: Option<Duration>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
}

/// The record of one watch.
#[derive(Debug, Default)]
struct Seen {
    next_start: Option<Instant>,
    /// Present while it is open.
    last_byte: Option<Instant>,
    /// The time until which it counts as connected although it has ended.
    connected_until: Option<Instant>,
    /// The time of the last sign that it does not hang: an event, its end, a refusal, or a new start with a list.
    /// Opening the watch is no such sign: a proxy between us and the server may open it and withhold its events.
    last_activity: Option<Instant>,
    /// Pages of its list that have been requested.
    pages: u32,
}

impl Seen {
    fn state(&self) -> WatchState {
        WatchState {
            connected: self.last_byte.is_some()
                || self.connected_until.is_some_and(|time| Instant::now() < time),
            idle: self.last_activity.map(|time| time.elapsed()),
        }
    }

    fn is_worth_remembering(&self, now: Instant) -> bool {
        let recent = self.last_activity.is_some_and(|time| now.duration_since(time) < REMEMBERED);
        self.last_byte.is_some() || self.next_start > Some(now) || recent
    }
}

impl Watches {
    /// Waits until this watch may start.
    pub(super) async fn turn(&self, uri: &str) {
        let start = {
            let mut seen = self.seen();
            // A watch that ended long ago may start at any time, and need not be remembered.
            let now = Instant::now();
            seen.retain(|_, watch| watch.is_worth_remembering(now));
            let watch = seen.entry(name(uri)).or_default();
            watch.last_activity.get_or_insert(now);
            let start = watch.next_start.map_or(now, |next| next.max(now));
            watch.next_start = Some(start + BETWEEN_STARTS);
            start
        };
        sleep_until(start).await;
    }

    /// Records that a watch starts again with a list. The list has its own deadline.
    pub(super) fn begins_anew(&self, uri: &str) {
        self.note_activity(name(uri));
    }

    /// Records that a watch was refused, or that the server could not be reached.
    pub(super) fn failed_to_start(&self, uri: &str) {
        self.note_activity(name(uri));
    }

    fn note_activity(&self, name: String) {
        self.seen().entry(name).or_default().last_activity = Some(Instant::now());
    }

    /// The status of the watches of a path, whatever they select: the worst of them.
    pub(super) fn state(&self, path: &str) -> WatchState {
        let seen = self.seen();
        let of_path = |name: &&String| name.split('?').next() == Some(path);
        let mut states = seen.keys().filter(of_path).map(|name| seen[name].state()).peekable();
        if states.peek().is_none() {
            return WatchState::default();
        }
        states.fold(WatchState { connected: true, idle: None }, |worst, state| WatchState {
            connected: worst.connected && state.connected,
            idle: worst.idle.max(state.idle),
        })
    }

    /// Records the request for a page of a list. Returns the number of the page, counted from one.
    pub(super) fn next_page(&self, uri: &str) -> u32 {
        let continues = uri.split(['?', '&']).any(|pair| pair.starts_with("continue="));
        let mut seen = self.seen();
        let watch = seen.entry(name(uri)).or_default();
        watch.pages = if continues { watch.pages.saturating_add(1) } else { 1 };
        watch.pages
    }

    /// Passes on a watch's events, records when they arrive, and ends it if they stop or break a limit. Events that
    /// arrive faster than the limits of the transport permit are read more slowly.
    pub(super) fn follow<B>(
        &self,
        transport: &Transport,
        uri: &str,
        body: B,
        silence: Duration,
    ) -> UnsyncBoxBody<Bytes, BoxError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let open = Open::new(self.clone(), name(uri));
        let line = Line::new(transport.limits, &transport.budget);
        let frames =
            stream::unfold(Some((Box::pin(body), open, line, transport.clone())), move |state| async move {
                let (mut body, mut open, mut line, transport) = state?;
                let next =
                    async { next_frame(&mut body.as_mut()).await.map(|frame| frame.map_err(Into::into)) };
                match timeout(silence, next).await {
                    Ok(Some(Ok(frame))) => {
                        open.note_activity();
                        let data = frame.data_ref().cloned().unwrap_or_default();
                        transport.storage.received(&data);
                        if let Err(broken) = line.read(&data) {
                            return Some((Err(transport.watch_failed(&open.name, broken.into())), None));
                        }
                        let pause = transport.rates.watches.take(data.len().max(LEAST_WATCH_BYTES));
                        if !pause.is_zero() {
                            sleep(pause).await;
                        }
                        Some((Ok(frame), Some((body, open, line, transport))))
                    }
                    Ok(Some(Err(error))) => {
                        open.end = End::Failed;
                        Some((Err(transport.watch_failed(&open.name, error)), None))
                    }
                    Ok(None) => None,
                    Err(_) => {
                        open.end = End::FellSilent;
                        let error = TransportError::Deadline(silence).into();
                        Some((Err(transport.watch_failed(&open.name, error)), None))
                    }
                }
            });
        StreamBody::new(frames).boxed_unsync()
    }

    pub(super) fn ages(&self) -> Vec<(String, Duration)> {
        let age = |(name, watch): (&String, &Seen)| Some((name.clone(), watch.last_byte?.elapsed()));
        self.seen().iter().filter_map(age).collect()
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        // Every change of the map is one assignment: a panic cannot leave it half done.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch that is open for as long as this lives.
struct Open {
    watches: Watches,
    name: String,
    end: End,
}

/// The reason why a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The server or the caller has ended it.
    Ordinary,
    /// Its connection was lost.
    Failed,
    /// Nothing was received for too long.
    FellSilent,
}

impl Open {
    fn new(watches: Watches, name: String) -> Self {
        let now = Instant::now();
        let mut seen = watches.seen();
        let watch = seen.entry(name.clone()).or_default();
        watch.last_byte = Some(now);
        watch.last_activity.get_or_insert(now);
        drop(seen);
        Self { watches, name, end: End::Ordinary }
    }

    fn note_activity(&self) {
        let now = Some(Instant::now());
        let mut seen = self.watches.seen();
        let watch = seen.entry(self.name.clone()).or_default();
        (watch.last_byte, watch.last_activity) = (now, now);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(watch) = self.watches.seen().get_mut(&self.name) {
            let now = Instant::now();
            let reopening = match self.end {
                End::Ordinary | End::FellSilent => REOPENING,
                End::Failed => REOPENING_AFTER_FAILURE,
            };
            (watch.last_byte, watch.connected_until) = (None, Some(now + reopening));
            if self.end != End::FellSilent {
                watch.last_activity = Some(now);
            }
        }
    }
}

/// The identity of a watch: its path and selectors, without its position.
fn name(uri: &str) -> String {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let selects = |pair: &&str| pair.starts_with("fieldSelector=") || pair.starts_with("labelSelector=");
    let selectors: Vec<&str> = query.split('&').filter(selects).collect();
    if selectors.is_empty() { path.to_owned() } else { format!("{path}?{}", selectors.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use tokio::time::advance;

    const PATH: &str = "/api/v1/nodes";
    const SECOND: Duration = Duration::from_secs(1);

    /// A watch whose events come from the other end.
    fn open(
        watches: &Watches,
    ) -> (tokio::sync::mpsc::UnboundedSender<Bytes>, UnsyncBoxBody<Bytes, BoxError>) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let events = stream::unfold(receiver, |mut receiver| async move {
            let bytes = receiver.recv().await?;
            Some((Ok::<_, BoxError>(Frame::data(bytes)), receiver))
        });
        let uri = format!("{PATH}?watch=true&resourceVersion=7");
        let body = StreamBody::new(events);
        (sender, watches.follow(&Transport::new("test"), &uri, body, Duration::from_mins(3)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_not_read_shows_for_how_long() {
        let watches = Watches::default();
        assert_eq!(watches.state(PATH), WatchState::default());
        let (events, mut body) = open(&watches);
        events.send(Bytes::from("{}")).unwrap();
        assert!(body.frame().await.is_some());
        // The test stops reading: only a reader measures how long the watch receives nothing.
        advance(Duration::from_mins(10)).await;
        let stuck = WatchState { connected: true, idle: Some(Duration::from_mins(10)) };
        assert_eq!(watches.state(PATH), stuck);
        events.send(Bytes::from("{}")).unwrap();
        assert!(body.frame().await.is_some());
        assert_eq!(watches.state(PATH), WatchState { connected: true, idle: Some(Duration::ZERO) });
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_reopens_without_events_counts_as_hanging() {
        let watches = Watches::default();
        for round in 1..=3 {
            let (_events, mut body) = open(&watches);
            assert!(body.frame().await.is_some_and(|frame| frame.is_err()), "it falls silent");
            drop(body);
            let silent = Duration::from_mins(3) * round;
            assert_eq!(watches.state(PATH), WatchState { connected: true, idle: Some(silent) });
        }
        watches.failed_to_start(PATH);
        assert_eq!(watches.state(PATH).idle, Some(Duration::ZERO), "a server that is away does not hang");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_has_ended_is_connected_for_a_moment_longer() {
        let watches = Watches::default();
        let (_events, body) = open(&watches);
        drop(body);
        advance(REOPENING.saturating_sub(SECOND)).await;
        assert!(watches.state(PATH).connected, "the server ends watches in good order all the time");
        advance(SECOND).await;
        assert_eq!(watches.state(PATH), WatchState { connected: false, idle: Some(REOPENING) });
        watches.begins_anew(PATH);
        assert_eq!(watches.state(PATH).idle, Some(Duration::ZERO), "it is retried");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_whose_connection_was_lost_is_disconnected_soon() {
        let watches = Watches::default();
        let broken = stream::iter([Err::<Frame<Bytes>, BoxError>("broken pipe".into())]);
        let body = StreamBody::new(broken);
        let mut body = watches.follow(&Transport::new("test"), PATH, body, Duration::from_mins(3));
        assert!(body.frame().await.is_some_and(|frame| frame.is_err()));
        drop(body);
        assert!(watches.state(PATH).connected, "it is opened again after a second");
        advance(REOPENING_AFTER_FAILURE).await;
        assert!(!watches.state(PATH).connected);
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_watches_of_a_path_the_worst_counts() {
        let watches = Watches::default();
        let (_events, _body) = open(&watches);
        assert!(watches.state(PATH).connected);
        advance(SECOND).await;
        watches.begins_anew(&format!("{PATH}?labelSelector=a"));
        assert_eq!(watches.state(PATH), WatchState { connected: false, idle: Some(SECOND) });
    }
}
