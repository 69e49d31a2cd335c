//! Connections to one cluster, over HTTP/2 where the server offers it, else over HTTP/1.1.
//!
//! An HTTP/2 connection carries many requests at once, but not any number: kube-apiserver permits 100 streams, and
//! further requests would wait behind watches that never end. Here a connection carries at most [`STREAMS`], and
//! another one is opened when it is full. Pings detect a server that no longer answers. The connection is then closed,
//! which ends every watch on it.

mod body;
mod exclusive;
mod shared;
#[cfg(test)]
mod tests;

use super::connect::{Connector, Dialled};
use super::protocol::{LatestProtocol, Protocol};
use super::request_context::{Lane, RequestContext};
pub(super) use body::PooledBody;
use exclusive::Idle;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use shared::{Reserved, SharedConnections};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::BoxError;

/// Requests and watches that share a connection. kube-apiserver permits 100 streams, and proxies in front of one have
/// the same default.
pub(super) const STREAMS: usize = 80;

/// The number of times that a request is moved to another connection because its own had just been closed. In
/// this case it was not sent.
const ATTEMPTS: usize = 3;

/// The time for which an idle connection is kept.
const KEPT_IDLE: Duration = Duration::from_secs(90);

/// Pings on connections of HTTP/2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pings {
    /// The time without anything received after which a ping is sent.
    pub(super) interval: Duration,
    /// The time to answer it.
    pub(super) timeout: Duration,
}

impl Default for Pings {
    /// A server that no longer answers is noticed after 40 s at most.
    fn default() -> Self {
        Self { interval: Duration::from_secs(25), timeout: Duration::from_secs(15) }
    }
}

/// A service that sends requests to one server. Clones share their connections.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connector: Connector,
    pings: Pings,
    latest: LatestProtocol,
    watches: SharedConnections,
    leases: SharedConnections,
    requests: SharedConnections,
    idle: Arc<Idle>,
}

/// A connection that a request can be sent on.
enum Way {
    Shared(Reserved),
    Exclusive(exclusive::Sender),
}

/// A request that was not answered.
struct Failed {
    error: hyper::Error,
    /// The request, if nothing of it was sent.
    unsent: Option<Request<Body>>,
}

impl From<hyper::client::conn::TrySendError<Request<Body>>> for Failed {
    fn from(mut error: hyper::client::conn::TrySendError<Request<Body>>) -> Self {
        Self { unsent: error.take_message(), error: error.into_error() }
    }
}

impl Pool {
    pub(super) fn new(connector: Connector, pings: Pings, latest: LatestProtocol) -> Self {
        let inner = Inner {
            connector,
            pings,
            latest,
            watches: SharedConnections::default(),
            leases: SharedConnections::default(),
            requests: SharedConnections::default(),
            idle: Arc::default(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Inner {
    fn lane(&self, lane: Lane) -> &SharedConnections {
        match lane {
            Lane::Watches => &self.watches,
            Lane::Leases => &self.leases,
            Lane::Requests => &self.requests,
        }
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<PooledBody>, BoxError> {
        let context = request.extensions_mut().remove::<RequestContext>().unwrap_or(RequestContext::plain());
        let mut attempt = 1;
        loop {
            let way = self.way(context.lane).await?;
            // Finding or opening a connection may have taken time. From here on nothing is awaited before the
            // request is sent.
            context.check()?;
            let answer = match way {
                Way::Shared(stream) => stream.send(request).await,
                Way::Exclusive(sender) => exclusive::send(sender, request, &self.idle).await,
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(Failed { unsent: Some(unsent), .. }) if attempt < ATTEMPTS => request = unsent,
                Err(Failed { error, .. }) => return Err(error.into()),
            }
            attempt += 1;
        }
    }

    /// A connection with room for one more request: one that is open, else a new one.
    async fn way(&self, lane: Lane) -> Result<Way, BoxError> {
        let shared = self.lane(lane);
        if let Some(way) = self.open_way(shared).await {
            return Ok(way);
        }
        if self.latest.get() == Some(Protocol::Http1) {
            return self.dial(shared).await;
        }
        // Over HTTP/2 one new connection is enough for all requests that wait for one.
        let _opening = shared.opening().await;
        match self.open_way(shared).await {
            Some(way) => Ok(way),
            None => self.dial(shared).await,
        }
    }

    async fn open_way(&self, shared: &SharedConnections) -> Option<Way> {
        if let Some(stream) = shared.reserve() {
            return Some(Way::Shared(stream));
        }
        self.idle.take().await.map(Way::Exclusive)
    }

    async fn dial(&self, shared: &SharedConnections) -> Result<Way, BoxError> {
        let Dialled { stream, protocol } = self.connector.dial().await?;
        self.latest.set(protocol);
        Ok(match protocol {
            Protocol::Http1 => Way::Exclusive(exclusive::open(stream).await?),
            Protocol::Http2 => Way::Shared(shared.open(stream, self.pings).await?),
        })
    }
}

impl tower::Service<Request<Body>> for Pool {
    type Response = Response<PooledBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = self.inner.clone();
        Box::pin(async move { inner.send(request).await })
    }
}
