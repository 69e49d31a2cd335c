//! The process of one controller as the API servers see it: it runs or has ended, and its connections are open, hung or
//! down.

use super::transport::broken;
use five_spot_apiserver::BoxError;
use five_spot_controller::leader::{LeaseClock, TokioClock};
use http::{Method, Request};
use kube::client::Body;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The prefix of the names of all Leases of elections and instances.
pub(super) const LEASE_NAME: &str = "5spot-leader";

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    /// A Lease of the election or of an instance.
    Coordination,
    /// Anything else is read.
    Read,
    /// Anything else is written.
    Write,
}

impl Traffic {
    /// The purpose of a request, and the request. The name of a Lease that is created is in its body only.
    pub(super) async fn of(request: Request<Body>) -> Result<(Self, Request<Body>), BoxError> {
        let other = if *request.method() == Method::GET { Self::Read } else { Self::Write };
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let Some((_, name)) = path.split_once("/leases") else { return Ok((other, request)) };
        if name.starts_with(&format!("/{LEASE_NAME}")) || query.contains(LEASE_NAME) {
            return Ok((Self::Coordination, request));
        }
        if *request.method() != Method::POST {
            return Ok((other, request));
        }
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let lease: serde_json::Value = serde_json::from_slice(&body)?;
        let is_ours = lease["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(LEASE_NAME));
        let traffic = if is_ours { Self::Coordination } else { other };
        Ok((traffic, Request::from_parts(parts, Body::from(body))))
    }
}

/// The state of the connections of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinkState {
    /// Everything passes.
    #[default]
    Open,
    /// Nothing passes in either direction.
    Silent,
    /// The process was stopped and continues: it has not yet seen who holds the Lease.
    Resuming,
    /// Requests fail.
    Down,
}

/// The clock of a process that can be stopped: meanwhile no time passes for it.
#[derive(Default)]
struct StoppableClock {
    clock: TokioClock,
    stopped_at: Mutex<Option<Duration>>,
}

impl StoppableClock {
    fn stopped_at(&self) -> MutexGuard<'_, Option<Duration>> {
        self.stopped_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseClock for StoppableClock {
    fn now(&self) -> Duration {
        self.stopped_at().unwrap_or_else(|| self.clock.now())
    }
}

/// A process.
#[derive(Default)]
pub(super) struct RunState {
    /// The name of its pod, and a number: the holder in a Lease.
    pub(super) identity: String,
    dead: AtomicBool,
    link: watch::Sender<LinkState>,
    clock: Arc<StoppableClock>,
}

impl RunState {
    pub(super) fn new(identity: String) -> Self {
        Self { identity, ..Self::default() }
    }

    /// Ends the process: nothing is sent or received from now on.
    pub(super) fn end(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_over(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// The clock that Leases are measured by.
    pub(super) fn clock(&self) -> Arc<dyn LeaseClock> {
        self.clock.clone()
    }

    /// Stops the process, as SIGSTOP does.
    pub(super) fn stop(&self) {
        *self.clock.stopped_at() = Some(self.clock.clock.now());
        self.link.send_replace(LinkState::Silent);
    }

    /// Continues a process that was stopped. It sees the current time, but not yet the holder of the Lease.
    pub(super) fn resume(&self) {
        *self.clock.stopped_at() = None;
        self.link.send_replace(LinkState::Resuming);
    }

    /// Lets connections hang: nothing passes, and they stay open.
    pub(super) fn silence(&self) {
        self.link.send_replace(LinkState::Silent);
    }

    /// Makes every request fail.
    pub(super) fn cut_off(&self) {
        self.link.send_replace(LinkState::Down);
    }

    /// Restores the connections.
    pub(super) fn open(&self) {
        self.link.send_replace(LinkState::Open);
    }

    /// Waits until a request or a part of an answer may pass. A write that was to be sent while nothing passed is lost:
    /// a stopped process has not sent it yet, and a connection that hung is replaced.
    pub(super) async fn passes(&self, traffic: Traffic) -> Result<(), BoxError> {
        let mut link = self.link.subscribe();
        let was_silent = *link.borrow() == LinkState::Silent;
        let is_open = |state: &LinkState| match state {
            LinkState::Open | LinkState::Down => true,
            LinkState::Resuming => traffic != Traffic::Coordination,
            LinkState::Silent => false,
        };
        // The sender lives as long as `self`, so that waiting cannot fail.
        let state = link.wait_for(is_open).await.map_or(LinkState::Down, |state| *state);
        if state == LinkState::Down || was_silent && traffic == Traffic::Write {
            return Err(broken("the connection was lost"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn traffic(method: Method, uri: &str, body: &str) -> Traffic {
        let body = Body::from(body.as_bytes().to_vec());
        let request = Request::builder().method(method).uri(uri).body(body).expect("a request");
        Traffic::of(request).await.expect("a purpose").0
    }

    #[tokio::test]
    async fn leases_of_elections_and_claims_are_told_apart() {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";
        let (ours, claim) =
            (r#"{"metadata": {"name": "5spot-leader-instance-0"}}"#, r#"{"metadata": {"name": "5spot-m"}}"#);
        assert_eq!(traffic(Method::POST, leases, ours).await, Traffic::Coordination);
        assert_eq!(traffic(Method::POST, leases, claim).await, Traffic::Write);
        assert_eq!(traffic(Method::PUT, &format!("{leases}/5spot-leader"), "").await, Traffic::Coordination);
        assert_eq!(traffic(Method::DELETE, &format!("{leases}/5spot-m"), "").await, Traffic::Write);
        let watch = format!("{leases}?fieldSelector=metadata.name%3D5spot-leader&watch=true");
        assert_eq!(traffic(Method::GET, &watch, "").await, Traffic::Coordination);
        assert_eq!(traffic(Method::GET, "/api/v1/nodes", "").await, Traffic::Read);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_process_sends_nothing_that_it_had_not_begun() {
        let process = Arc::new(RunState::default());
        process.stop();
        let before = process.clock().now();
        let pending = [Traffic::Write, Traffic::Read].map(|traffic| {
            let process = process.clone();
            tokio::spawn(async move { process.passes(traffic).await.is_ok() })
        });
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(process.clock().now(), before, "no time passes for it");
        process.resume();
        assert!(process.clock().now() > before);
        let [write, read] = pending;
        assert!(!write.await.expect("no panic") && read.await.expect("no panic"));
    }
}
