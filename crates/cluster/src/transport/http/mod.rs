//! The one door for every request: a `tower` layer around every client, of the management cluster or of a workload
//! cluster, real or embedded.
//!
//! It says who we are, bounds how long an answer may take, asks before each write whether we may write at all, starts
//! no watch more than once a second, ends a watch that has fallen silent, and tells a [`Witness`] of every answer.
//! It bounds what a cluster may send and how often it is asked ([`Limits`]), decides where a connection may lead
//! ([`AddressRules`]), and passes on no text of a server but a bounded `Status`.
//! It never tries again: that is for the queue, which knows what else is waiting.

mod address;
mod answer;
mod budget;
mod call;
mod connect;
mod failure;
mod limits;
mod passage;
mod pool;
mod protocol;
mod pulse;
mod rate;
mod service;
mod shape;
mod status;
mod storage;
#[cfg(test)]
mod tests;
mod watches;

pub use address::{AddressRules, Cidr, CidrError};
pub use call::Call;
pub use connect::ConnectRules;
pub use failure::DoorError;
pub(crate) use failure::with_causes;
pub use limits::Limits;
pub use protocol::Protocol;
pub use service::DoorService;
pub use watches::WatchState;

use crate::transport::repeat::Repeats;
use budget::Budget;
use http::{HeaderValue, StatusCode};
use kube::client::Body;
use kube::{Client, Config};
use protocol::LatestProtocol;
use pulse::Pulse;
use rate::Rate;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use storage::StorageAnswers;
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

/// The door. Clones are the same door.
#[derive(Clone)]
pub struct Door {
    user_agent: HeaderValue,
    witness: Arc<dyn Witness>,
    /// All of them have to agree. Without any, everything may be written.
    fences: Arc<[Arc<dyn Fence>]>,
    watches: Watches,
    protocol: LatestProtocol,
    storage: StorageAnswers,
    /// Whether the cluster behind it answers. Not asked of the management cluster: without that nothing can be done.
    pulse: Option<Pulse>,
    /// The cluster, for log lines: `management`, or the Secret that leads to it.
    cluster: Arc<str>,
    limits: Limits,
    budget: Budget,
    watch_rate: Rate,
    requests: Rate,
    failures: Rate,
    warnings: Arc<Repeats>,
}

impl Door {
    /// A door for a program of this name, `5spot-controller` for instance.
    ///
    /// # Panics
    /// If the name cannot stand in a header.
    pub fn new(program: &str) -> Self {
        let user_agent = format!("{program}/{}", env!("CARGO_PKG_VERSION"));
        let user_agent = HeaderValue::try_from(user_agent).expect("the name of a program is plain text");
        let limits = Limits::MANAGEMENT;
        Self {
            user_agent,
            witness: Arc::new(Nobody),
            fences: Arc::default(),
            watches: Watches::default(),
            protocol: LatestProtocol::default(),
            storage: StorageAnswers::default(),
            pulse: None,
            cluster: "management".into(),
            limits,
            budget: Budget::new(limits.buffered_bytes),
            watch_rate: Rate::new(limits.watch_bytes_per_minute),
            requests: Rate::new(limits.requests_per_minute as usize),
            failures: Rate::new(limits.failures_per_minute as usize),
            warnings: Arc::default(),
        }
    }

    /// The same door with someone who looks.
    #[must_use]
    pub fn with_witness(self, witness: Arc<dyn Witness>) -> Self {
        Self { witness, ..self }
    }

    /// The same door with one more fence before every write. The fences that it has stay.
    #[must_use]
    pub fn with_fence(self, fence: Arc<dyn Fence>) -> Self {
        let fences = self.fences.iter().cloned().chain([fence]).collect();
        Self { fences, ..self }
    }

    /// The reason of the first fence that refuses writes at this moment.
    fn check_fences(&self) -> Result<(), &'static str> {
        self.fences.iter().try_for_each(|fence| fence.check())
    }

    /// A client that reaches a cluster over the network, as far as `rules` permit.
    pub fn client_for(&self, config: &Config, rules: ConnectRules) -> Result<Client, kube::Error> {
        let service = connect::service(config, rules, self.protocol.clone())?;
        Ok(Client::new(tower::Layer::layer(self, service), config.default_namespace.clone()))
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

    /// The same door for a workload cluster: its watches are not to be mistaken for those of this one, it may fall
    /// silent, and it is not trusted. `cluster` names it in log lines.
    #[must_use]
    pub fn workload(&self, cluster: &str) -> Self {
        let limits = Limits::WORKLOAD;
        Self {
            watches: Watches::default(),
            protocol: LatestProtocol::default(),
            storage: StorageAnswers::default(),
            pulse: Some(Pulse::default()),
            cluster: cluster.into(),
            limits,
            budget: Budget::new(limits.buffered_bytes),
            watch_rate: Rate::new(limits.watch_bytes_per_minute),
            requests: Rate::new(limits.requests_per_minute as usize),
            failures: Rate::new(limits.failures_per_minute as usize),
            ..self.clone()
        }
    }

    /// The protocol of the latest connection. Absent before the first one, and for a service in this process.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol.get()
    }

    /// The time since anything has shown that the storage behind the API server answers. Bookmarks do not: they come
    /// from a cache.
    pub fn storage_silence(&self) -> Duration {
        self.storage.silence()
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
