//! The one door for every request: a `tower` layer around every client, of the management cluster or of a workload
//! cluster, real or embedded.
//!
//! It says who we are, bounds how long an answer may take, asks before each write whether we may write at all, starts
//! no watch more than once a second, ends a watch that has fallen silent, and tells a [`Witness`] of every answer.
//! It never tries again: that is for the queue, which knows what else is waiting.

mod call;
mod pulse;
mod service;
#[cfg(test)]
mod tests;
mod watches;

pub use call::Call;
pub use service::DoorService;
pub use watches::WatchState;

use http::{HeaderValue, StatusCode};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use pulse::Pulse;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use watches::Watches;

/// How long an answer may take, watches aside. A kube-apiserver gives up after 60 s itself; nothing that we ask for
/// takes one more than a second, and a worker that waits is a worker less.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// How long a watch may be silent. A kube-apiserver sends a bookmark about every minute, so that after three the
/// connection is dead, whatever TCP says.
const WATCH_SILENCE: Duration = Duration::from_mins(3);

/// A request that has been answered, or has failed.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What was asked.
    pub call: Call,
    /// The status of the answer; absent if there was none.
    pub status: Option<StatusCode>,
    /// How long it took.
    pub took: Duration,
}

/// Someone who is told of every request, for metrics, for a timeline, for a test.
pub trait Witness: Send + Sync + 'static {
    /// A request has been answered or has failed.
    fn answered(&self, exchange: &Exchange);
}

/// Nobody looks.
struct Nobody;

impl Witness for Nobody {
    fn answered(&self, _: &Exchange) {}
}

/// Whether this instance may write at this moment.
pub trait Fence: Send + Sync + 'static {
    /// Why not, if it may not.
    fn check(&self) -> Result<(), &'static str>;
}

/// An instance that has nobody to share with may always write.
struct Open;

impl Fence for Open {
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// What was not sent, or not answered, on our side of the door.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// No answer within the deadline. It may still have been carried out.
    #[error("no answer within {} s", .0.as_secs())]
    Deadline(Duration),
    /// Somebody else has been waiting for an answer of this cluster in vain; nothing was sent.
    #[error("not sent: the cluster has not answered for {} s", .0.as_secs())]
    Silent(Duration),
    /// We may not write now; nothing was sent.
    #[error("not sent: {0}")]
    Fenced(&'static str),
}

/// The door. Clones are the same door.
#[derive(Clone)]
pub struct Door {
    user_agent: HeaderValue,
    witness: Arc<dyn Witness>,
    fence: Arc<dyn Fence>,
    watches: Watches,
    /// Whether the cluster behind it answers. Not asked of the management cluster: without that nothing can be done.
    pulse: Option<Pulse>,
}

impl Door {
    /// A door for a program of this name, `5spot-controller` for instance.
    ///
    /// # Panics
    /// If the name cannot stand in a header.
    pub fn new(program: &str) -> Self {
        let user_agent = format!("{program}/{}", env!("CARGO_PKG_VERSION"));
        let user_agent = HeaderValue::try_from(user_agent).expect("the name of a program is plain text");
        let (witness, fence) = (Arc::new(Nobody), Arc::new(Open));
        Self { user_agent, witness, fence, watches: Watches::default(), pulse: None }
    }

    /// The same door with someone who looks.
    #[must_use]
    pub fn with_witness(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness, ..self }
    }

    /// The same door with a fence before every write.
    #[must_use]
    pub fn with_fence(self, fence: Arc<dyn Fence>) -> Self {
        Self { fence, ..self }
    }

    /// A client that reaches a cluster over the network.
    pub fn client_for(&self, mut config: Config) -> Result<Client, kube::Error> {
        config.default_retry = false;
        Ok(ClientBuilder::try_from(config)?.with_layer(self).build())
    }

    /// A client over any service, such as the embedded API.
    pub fn client_over<S, B>(&self, service: S) -> Client
    where
        S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Client::new(tower::Layer::layer(self, service), "default")
    }

    /// The same door for another cluster, whose watches are not to be mistaken for those of this one, and which may
    /// fall silent.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self { watches: Watches::default(), pulse: Some(Pulse::default()), ..self.clone() }
    }

    /// How the watches of a path stand, whatever they select.
    pub fn watch_of(&self, path: &str) -> WatchState {
        self.watches.state(path)
    }

    /// For every open watch, its path and how long it has been silent.
    pub fn watch_ages(&self) -> Vec<(String, Duration)> {
        self.watches.ages()
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}

impl<S> tower::Layer<S> for Door {
    type Service = DoorService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        DoorService::new(self.clone(), inner)
    }
}
