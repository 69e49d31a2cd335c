//! Connections of HTTP/2, which many requests share.

use super::body::PooledBody;
use super::{Failed, KEPT_IDLE, Pings, STREAMS};
use crate::transport::http::connect::Stream;
use http::{Request, Response, Version, header};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Bytes that a server may send ahead on one stream. They are held outside the memory budget of the cluster, but a
/// list needs enough of them to arrive at full speed.
const STREAM_WINDOW: u32 = 256 << 10;

/// Bytes that a server may send ahead on all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Bytes of an answer's headers. Warnings of the API server are headers.
const HEADER_BYTES: u32 = 64 << 10;

/// The time after which a waiting request makes the connection suspect, if nothing at all has been received on it. The
/// renewal of a Lease times out after five seconds; pings need 40 s to detect a dead connection.
const SUSPICIOUS: Duration = Duration::from_secs(3);

/// The connections of one lane.
#[derive(Debug, Default)]
pub(super) struct SharedConnections {
    open: Arc<Mutex<Vec<Arc<Connection>>>>,
    opening: tokio::sync::Mutex<()>,
}

/// One connection.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Body>,
    streams: AtomicUsize,
    /// The streams that it takes: ours, or fewer if the server says so.
    most_streams: AtomicUsize,
    /// A request on it timed out: it accepts no new requests, and those in flight continue.
    suspected: AtomicBool,
    /// The time at which anything was last received.
    last_received: Mutex<Instant>,
    /// The time at which the last stream ended.
    idle_since: Mutex<Instant>,
}

/// A stream of a connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    connection: Arc<Connection>,
}

impl SharedConnections {
    /// Permits one caller at a time to open a connection.
    pub(super) async fn opening(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// A stream of the first connection that has a free one. Later connections become idle that way, and are
    /// closed.
    pub(super) fn reserve(&self) -> Option<Reserved> {
        let mut open = lock(&self.open);
        open.retain(|connection| !connection.sender.is_closed());
        open.iter().find_map(Connection::reserve)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// A stream of a new connection.
    pub(super) async fn open(&self, stream: Stream, pings: Pings) -> Result<Reserved, hyper::Error> {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_BYTES)
            .keep_alive_interval(pings.interval)
            .keep_alive_timeout(pings.timeout)
            .keep_alive_while_idle(true)
            .handshake(stream)
            .await?;
        let connection = Arc::new(Connection {
            sender,
            streams: AtomicUsize::new(1),
            most_streams: AtomicUsize::new(STREAMS),
            suspected: AtomicBool::new(false),
            last_received: Mutex::new(Instant::now()),
            idle_since: Mutex::new(Instant::now()),
        });
        lock(&self.open).push(connection.clone());
        tokio::spawn(drive(driver, connection.clone(), self.open.clone()));
        Ok(Reserved { connection })
    }
}

type Driver = http2::Connection<Stream, Body, TokioExecutor>;

/// Drives a connection until it ends: because it is lost, because the server closes it, or because it was idle for a
/// while.
async fn drive(driver: Driver, connection: Arc<Connection>, open: Arc<Mutex<Vec<Arc<Connection>>>>) {
    let mut driver = pin!(driver);
    let has_ended = loop {
        let polled = std::future::poll_fn(|context| {
            let polled = driver.as_mut().poll(context);
            let permitted = driver.current_max_send_streams().clamp(1, STREAMS);
            connection.most_streams.store(permitted, Ordering::Relaxed);
            polled
        });
        tokio::select! {
            biased;
            _ = polled => break true,
            () = sleep(KEPT_IDLE) => {
                if connection.is_idle() {
                    break false;
                }
            }
        }
    };
    lock(&open).retain(|other| !Arc::ptr_eq(other, &connection));
    drop(connection);
    if !has_ended {
        // It ends with its last sender: a stream may have been reserved a moment ago.
        let _ = driver.await;
    }
}

impl Connection {
    fn reserve(self: &Arc<Self>) -> Option<Reserved> {
        // Only called with the list locked, so no stream is added at the same time.
        let is_free = self.streams.load(Ordering::Relaxed) < self.most_streams.load(Ordering::Relaxed);
        if !is_free || self.suspected.load(Ordering::Relaxed) {
            return None;
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        Some(Reserved { connection: self.clone() })
    }

    fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Relaxed) == 0 && lock(&self.idle_since).elapsed() >= KEPT_IDLE
    }
}

impl Reserved {
    pub(super) async fn send(self, mut request: Request<Body>) -> Result<Response<PooledBody>, Failed> {
        // The authority of the URI replaces the header.
        request.headers_mut().remove(header::HOST);
        *request.version_mut() = Version::HTTP_2;
        let mut sender = self.connection.sender.clone();
        let mut waiting = Waiting { connection: &self.connection, since: Instant::now(), is_answered: false };
        let answer = sender.try_send_request(request).await;
        waiting.is_answered = true;
        drop(waiting);
        match answer {
            Ok(answer) => {
                self.note_received();
                Ok(answer.map(|body| PooledBody::shared(body, self)))
            }
            Err(error) => {
                let mut failed = Failed::from(error);
                if let Some(unsent) = &mut failed.unsent {
                    *unsent.version_mut() = Version::HTTP_11;
                }
                Err(failed)
            }
        }
    }

    /// Records that something was received.
    pub(super) fn note_received(&self) {
        *lock(&self.connection.last_received) = Instant::now();
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::Relaxed);
        if !self.connection.suspected.load(Ordering::Relaxed) {
            *lock(&self.connection.idle_since) = Instant::now();
        }
    }
}

/// A request that waits for its answer. If the caller gives up and nothing was received on the connection in between,
/// later requests use another one.
struct Waiting<'a> {
    connection: &'a Connection,
    since: Instant,
    is_answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let last_received = *lock(&self.connection.last_received);
        if !self.is_answered && self.since.elapsed() >= SUSPICIOUS && last_received <= self.since {
            self.connection.suspected.store(true, Ordering::Relaxed);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one insertion, removal or assignment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
