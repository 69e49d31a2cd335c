//! How clusters are reached: the management cluster by what the program was started with, a workload cluster by a
//! kubeconfig.

use crate::door::{Door, Fence, Witness};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::fmt;
use std::sync::Arc;
use tower::util::BoxCloneSyncService;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A service that answers requests, whatever stands behind it.
pub type Raw = BoxCloneSyncService<
    Request<Body>,
    Response<UnsyncBoxBody<bytes::Bytes, tower::BoxError>>,
    tower::BoxError,
>;

/// Where a kubeconfig leads.
pub enum Route {
    /// To a server on the network.
    Network(Box<Config>),
    /// To a service in this process.
    Embedded(Raw),
}

/// Why a kubeconfig leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It cannot be understood. What is wrong with it is not repeated: kube shows the lines around the mistake, and a
    /// credential may be in them.
    #[error("the kubeconfig names a context, cluster, user or certificate that is missing or cannot be read")]
    Kubeconfig(#[source] kube::config::KubeconfigError),
    /// A client cannot be made of it.
    #[error("failed to make a client: {0}")]
    Client(#[from] kube::Error),
    /// There is nobody at that address.
    #[error("no cluster answers at {0}")]
    Unknown(String),
}

/// Finds the way that a kubeconfig describes.
pub trait Dial: Send + Sync + 'static {
    /// The way to the cluster.
    fn dial(&self, kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>>;
}

/// Every cluster is on the network.
struct Network;

impl Dial for Network {
    fn dial(&self, kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(DialError::Kubeconfig)?;
            Ok(Route::Network(Box::new(config)))
        })
    }
}

type MakeClient = Arc<dyn Fn(&Door) -> Result<Client, kube::Error> + Send + Sync>;

/// The management cluster, the way to the others, the time, and the door that every request goes through.
#[derive(Clone)]
pub struct Connection {
    management: MakeClient,
    dial: Arc<dyn Dial>,
    now: Now,
    door: Door,
}

impl Connection {
    /// Clusters on the network and the wall clock.
    pub fn network(config: Config, program: &str) -> Self {
        Self {
            management: Arc::new(move |door| door.client_for(config.clone())),
            dial: Arc::new(Network),
            now: Arc::new(Timestamp::now),
            door: Door::new(program),
        }
    }

    /// A management cluster in this process, with a clock of its own.
    pub fn embedded(management: Raw, dial: Arc<dyn Dial>, now: Now, program: &str) -> Self {
        Self {
            management: Arc::new(move |door| Ok(door.client_over(management.clone()))),
            dial,
            now,
            door: Door::new(program),
        }
    }

    /// The same with someone who is told of every request.
    #[must_use]
    pub fn with_witness(self, witness: Arc<dyn Witness>) -> Self {
        Self { door: self.door.with_witness(witness), ..self }
    }

    /// The same with a fence before every write.
    #[must_use]
    pub fn with_fence(self, fence: Arc<dyn Fence>) -> Self {
        Self { door: self.door.with_fence(fence), ..self }
    }

    /// A client of the management cluster.
    pub fn management(&self) -> Result<Client, kube::Error> {
        (self.management)(&self.door)
    }

    /// A client of the cluster that a kubeconfig leads to.
    pub async fn workload(&self, kubeconfig: Kubeconfig) -> Result<Client, DialError> {
        Ok(match self.dial.dial(kubeconfig).await? {
            Route::Network(config) => self.door.apart().client_for(*config)?,
            Route::Embedded(service) => self.door.apart().client_over(service),
        })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The door, for what it knows of its watches.
    pub const fn door(&self) -> &Door {
        &self.door
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("door", &self.door).finish_non_exhaustive()
    }
}
