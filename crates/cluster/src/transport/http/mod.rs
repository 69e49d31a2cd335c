//! The `tower` layer around every client, of the management cluster or of a workload cluster, real or embedded.
//!
//! It sets the User-Agent, limits the time of every answer, checks the [`WriteGuard`]s before each write, starts no watch
//! more than once a second, ends a watch that receives nothing, and reports every answer to a [`RequestObserver`]. It
//! limits the size of answers and the rate of requests ([`Limits`]), restricts the addresses of connections
//! ([`AddressRules`]), and passes on no text of a server except a bounded `Status`. It never retries: only the queue
//! does.

mod address;
mod answer;
mod budget;
mod call;
mod clock_skew;
mod connect;
mod failure;
#[cfg(test)]
mod fuzz;
mod limits;
mod lookup;
mod namespace_share;
mod pool;
mod protocol;
mod rate;
mod request_context;
mod responsiveness;
mod service;
mod shape;
mod status;
mod storage;
#[cfg(test)]
mod tests;
mod throttled;
mod watches;

pub use address::{AddressRules, Cidr, CidrError};
pub(crate) use budget::{Budget, Share};
pub use call::Call;
pub use connect::ConnectRules;
pub use failure::TransportError;
pub(crate) use failure::with_causes;
pub use limits::Limits;
pub(crate) use limits::NAMESPACE_CLUSTERS;
use namespace_share::ClusterRates;
pub use namespace_share::{NamespaceShare, NamespaceShares};
pub use protocol::Protocol;
pub use service::TransportService;
pub use watches::WatchState;

use crate::transport::repeat::Repeats;
use clock_skew::ClockSkew;
use http::{HeaderValue, StatusCode};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::{Client, Config};
use protocol::LatestProtocol;
use responsiveness::Responsiveness;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use storage::StorageAnswers;
use watches::Watches;

/// The time that an answer may take, watches aside. A kube-apiserver itself times out after 60 s. None of our requests
/// takes it more than a second, and a waiting worker cannot do other work.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// The time for which a watch may receive nothing. A kube-apiserver sends a bookmark about every minute, so after three
/// minutes the connection is dead, even if TCP has not noticed.
const WATCH_SILENCE: Duration = Duration::from_mins(3);

/// A request that has been answered, or has failed.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The call.
    pub call: Call,
    /// The status of the answer; absent if there was none.
    pub status: Option<StatusCode>,
    /// The duration.
    pub took: Duration,
}

/// An observer of every request, for metrics, for a timeline, for a test.
pub trait RequestObserver: Send + Sync + 'static {
    /// A request has been answered or has failed.
    fn answered(&self, exchange: &Exchange);
}

/// An observer that ignores everything.
struct NoObserver;

impl RequestObserver for NoObserver {
    fn answered(&self, _: &Exchange) {}
}

/// A condition for every write. All guards of a transport have to agree.
pub trait WriteGuard: Send + Sync + 'static {
    /// Permits a write, or refuses it with the reason that the failed call reports.
    fn check(&self) -> Result<(), &'static str>;
}

/// The layer. Clones share its state.
#[derive(Clone)]
pub struct Transport {
    user_agent: HeaderValue,
    observer: Arc<dyn RequestObserver>,
    /// All of them have to permit a write.
    write_guards: Arc<[Arc<dyn WriteGuard>]>,
    watches: Watches,
    protocol: LatestProtocol,
    storage: StorageAnswers,
    clock_skew: ClockSkew,
    /// Tracks whether the cluster answers. Absent for the management cluster: without that one nothing can be done.
    responsiveness: Option<Responsiveness>,
    /// The cluster, for log lines: `management`, or the Secret that leads to it.
    cluster: Arc<str>,
    limits: Limits,
    budget: Budget,
    /// The share of the namespace that the cluster belongs to: it exists while a client does.
    _namespace: Option<Arc<NamespaceShare>>,
    rates: ClusterRates,
    warnings: Arc<Repeats>,
}

impl Transport {
    /// A transport for a program of this name, `5spot-controller` for instance.
    ///
    /// # Panics
    /// If the name is not valid in a header.
    pub fn new(program: &str) -> Self {
        let user_agent = format!("{program}/{}", env!("CARGO_PKG_VERSION"));
        let user_agent = HeaderValue::try_from(user_agent).expect("the name of a program is plain text");
        let limits = Limits::MANAGEMENT;
        Self {
            user_agent,
            observer: Arc::new(NoObserver),
            write_guards: Arc::default(),
            watches: Watches::default(),
            protocol: LatestProtocol::default(),
            storage: StorageAnswers::default(),
            clock_skew: ClockSkew::default(),
            responsiveness: None,
            cluster: "management".into(),
            limits,
            budget: Budget::new(limits.buffered_bytes),
            _namespace: None,
            rates: ClusterRates::new(&limits),
            warnings: Arc::default(),
        }
    }

    /// The same transport with another observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn RequestObserver>) -> Self {
        Self { observer, ..self }
    }

    /// The same transport with one more write guard, after those that it has.
    #[must_use]
    pub fn with_write_guard(self, guard: Arc<dyn WriteGuard>) -> Self {
        let write_guards = self.write_guards.iter().cloned().chain([guard]).collect();
        Self { write_guards, ..self }
    }

    /// The same transport, which compares this clock with that of the server.
    #[must_use]
    pub fn with_clock(self, now: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { clock_skew: ClockSkew::new(now), ..self }
    }

    /// The difference between the clock of this process and that of the server when that last answered. Absent before the
    /// first answer, and for a server that sends no `Date`.
    pub fn clock_skew(&self) -> Option<SignedDuration> {
        self.clock_skew.get()
    }

    /// The reason of the first guard that refuses writes at this moment.
    fn check_write_guards(&self) -> Result<(), &'static str> {
        self.write_guards.iter().try_for_each(|guard| guard.check())
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

    /// The same transport for a workload cluster: its watches are tracked separately, it may stop responding, and it is
    /// not trusted. `cluster` names it in log lines.
    #[must_use]
    pub fn workload(&self, cluster: &str) -> Self {
        let limits = Limits::WORKLOAD;
        Self {
            watches: Watches::default(),
            protocol: LatestProtocol::default(),
            storage: StorageAnswers::default(),
            clock_skew: ClockSkew::default(),
            responsiveness: Some(Responsiveness::default()),
            cluster: cluster.into(),
            limits,
            budget: Budget::new(limits.buffered_bytes),
            rates: ClusterRates::new(&limits),
            warnings: Arc::default(),
            ..self.clone()
        }
    }

    /// The same transport within the share of a namespace: of its memory and log lines here, of its connections in
    /// [`ConnectRules::within`]. It has the rates of every other transport to the same cluster, also of those before it.
    #[must_use]
    pub fn within(self, namespace: Arc<NamespaceShare>) -> Self {
        Self {
            budget: self.budget.within(&namespace.budget),
            warnings: namespace.warnings.clone(),
            rates: namespace.rates(&self.cluster),
            _namespace: Some(namespace),
            ..self
        }
    }

    /// The protocol of the latest connection. Absent before the first one, and for a service in this process.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol.get()
    }

    /// The time since the last sign that the storage behind the API server answers. Bookmarks are no such sign: they
    /// come from a cache.
    pub fn storage_silence(&self) -> Duration {
        self.storage.silence()
    }

    /// Notes that a check has shown that the storage answers.
    pub fn note_storage_checked(&self) {
        self.storage.checked();
    }

    /// The status of the watches of a path, whatever they select.
    pub fn watch_of(&self, path: &str) -> WatchState {
        self.watches.state(path)
    }

    /// For every open watch, its path and the time since it last received anything.
    pub fn watch_ages(&self) -> Vec<(String, Duration)> {
        self.watches.ages()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("user_agent", &self.user_agent).finish_non_exhaustive()
    }
}

impl<S> tower::Layer<S> for Transport {
    type Service = TransportService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TransportService::new(self.clone(), inner)
    }
}
