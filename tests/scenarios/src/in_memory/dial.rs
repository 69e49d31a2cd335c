//! The connections to the clusters: the state of their servers, and kubeconfigs whose token has to be current.

use super::impairments::Impairments;
use super::neighbours;
use super::transport::{RequestFilter, Transport, broken, page_not_found, refusal};
use crate::environment::{ServerState, WrongServer};
use crate::kinds::ClusterRole;
use five_spot_apiserver::{ApiServer, BoxError, ResponseBody};
use five_spot_cluster::{Dial, DialError, Raw, Route};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The address of the workload cluster.
const SERVER: &str = "https://workload.sandbox.invalid:6443";
/// The same cluster through a connection that can hang.
const OTHER_LINE: &str = "https://other-line.sandbox.invalid:6443";
/// Another cluster.
const OTHER_CLUSTER: &str = "https://other-cluster.sandbox.invalid:6443";
/// A web server.
const NO_API: &str = "https://no-api.sandbox.invalid:6443";

/// The valid credentials, their permissions, and the state of the servers and connections.
#[derive(Debug, Default)]
pub(super) struct ServerAccess {
    current: AtomicU32,
    nodes_are_readonly: AtomicBool,
    management: watch::Sender<ServerState>,
    workload: watch::Sender<ServerState>,
    other_line: watch::Sender<ServerState>,
    pub(super) impairments: Arc<Impairments>,
}

impl ServerAccess {
    /// From now on only new credentials are valid.
    pub(super) fn change(&self) {
        self.current.fetch_add(1, Ordering::SeqCst);
    }

    /// Allows or forbids changes of Nodes.
    pub(super) fn allow_node_writes(&self, is_allowed: bool) {
        self.nodes_are_readonly.store(!is_allowed, Ordering::SeqCst);
    }

    /// Sets the state of a server.
    pub(super) fn set_api_server(&self, side: ClusterRole, state: ServerState) {
        match side {
            ClusterRole::Management => self.management.send_replace(state),
            ClusterRole::Workload => self.workload.send_replace(state),
        };
    }

    /// Sets the state of the other connection.
    pub(super) fn set_other_line(&self, state: ServerState) {
        self.other_line.send_replace(state);
    }

    /// The filter in front of the management cluster.
    pub(super) fn management(&self) -> Arc<dyn RequestFilter> {
        Arc::new(ManagementFilter {
            server: ServerFilter { ways: vec![self.management.subscribe()], credentials: None },
            impairments: self.impairments.clone(),
        })
    }

    /// The filter in front of a cluster that accepts all clients.
    pub(super) fn open() -> Arc<dyn RequestFilter> {
        Arc::new(ServerFilter { ways: Vec::new(), credentials: None })
    }

    /// A kubeconfig with currently valid credentials.
    pub(super) fn kubeconfig(&self) -> String {
        self.kubeconfig_by(SERVER)
    }

    /// The same through the other connection.
    pub(super) fn kubeconfig_by_another_line(&self) -> String {
        self.kubeconfig_by(OTHER_LINE)
    }

    /// A kubeconfig for a server that is not that of the workload cluster.
    pub(super) fn kubeconfig_to(&self, server: WrongServer) -> String {
        self.kubeconfig_by(match server {
            WrongServer::OtherCluster => OTHER_CLUSTER,
            WrongServer::NoApi => NO_API,
        })
    }

    fn kubeconfig_by(&self, server: &str) -> String {
        let token = self.token();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: w\n\
             clusters: [{{name: w, cluster: {{server: '{server}'}}}}]\n\
             users: [{{name: w, user: {{token: {token}}}}}]\n\
             contexts: [{{name: w, context: {{cluster: w, user: w}}}}]\n"
        )
    }

    fn token(&self) -> String {
        format!("token-{}", self.current.load(Ordering::SeqCst))
    }
}

/// Finds the workload cluster by its address.
pub(super) struct Dialer {
    pub(super) workload: Transport,
    pub(super) other_cluster: Transport,
    pub(super) nodes: ApiServer,
    pub(super) access: Arc<ServerAccess>,
}

impl Dial for Dialer {
    fn dial(&self, kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        let server = kubeconfig.clusters.first().and_then(|named| named.cluster.as_ref()?.server.clone());
        let server = server.unwrap_or_default();
        let found = if server == SERVER || server == OTHER_LINE {
            let user = kubeconfig.auth_infos.first().and_then(|named| named.auth_info.clone());
            // A secret is made to be hard to print and to compare; here it is neither.
            let token = serde_json::to_value(user).unwrap_or_default()["token"].clone();
            let mut ways = vec![self.access.workload.subscribe()];
            if server == OTHER_LINE {
                ways.push(self.access.other_line.subscribe());
            }
            let filter = Arc::new(ServerFilter { ways, credentials: Some((self.access.clone(), token)) });
            Ok(Route::Embedded(Raw::new(Transport { filter, ..self.workload.clone() })))
        } else if server == OTHER_CLUSTER {
            Ok(Route::Embedded(Raw::new(self.other_cluster.clone())))
        } else if server == NO_API {
            Ok(Route::Embedded(Raw::new(Transport { filter: Arc::new(NoApi), ..self.other_cluster.clone() })))
        } else if let Some(hostile) = neighbours::server(&server, &self.nodes) {
            Ok(Route::Embedded(hostile))
        } else {
            Err(DialError::Unknown(server))
        };
        futures::future::ready(found).boxed()
    }
}

/// The filter of a cluster: its servers have to be up, and the credentials valid.
struct ServerFilter {
    ways: Vec<watch::Receiver<ServerState>>,
    credentials: Option<(Arc<ServerAccess>, Value)>,
}

impl RequestFilter for ServerFilter {
    fn refuses(&self, request: &Request<Body>) -> Option<Response<ResponseBody>> {
        let (access, token) = self.credentials.as_ref()?;
        if *token != access.token().as_str() {
            return Some(refusal(StatusCode::UNAUTHORIZED, "Unauthorized"));
        }
        let changes_node = *request.method() != Method::GET && request.uri().path().contains("/nodes/");
        let is_readonly = changes_node && access.nodes_are_readonly.load(Ordering::SeqCst);
        let is_forbidden = is_readonly || access.impairments.forbid_workload();
        is_forbidden.then(|| refusal(StatusCode::FORBIDDEN, "Forbidden"))
    }

    fn delay(&self, _: &Request<Body>) -> Duration {
        Duration::ZERO
    }

    fn passes(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        let ways = self.ways.clone();
        async move {
            for mut way in ways {
                let state = way.wait_for(|state| *state != ServerState::Silent).await;
                if state.map_or(ServerState::Down, |state| *state) == ServerState::Down {
                    return Err(broken("the server is away"));
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// The filter of the management cluster.
struct ManagementFilter {
    server: ServerFilter,
    impairments: Arc<Impairments>,
}

impl RequestFilter for ManagementFilter {
    fn refuses(&self, request: &Request<Body>) -> Option<Response<ResponseBody>> {
        self.impairments.refuse(request)
    }

    fn delay(&self, request: &Request<Body>) -> Duration {
        self.impairments.delay(request)
    }

    fn passes(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        self.server.passes()
    }
}

/// A web server that is not an API server.
struct NoApi;

impl RequestFilter for NoApi {
    fn refuses(&self, _: &Request<Body>) -> Option<Response<ResponseBody>> {
        Some(page_not_found())
    }

    fn delay(&self, _: &Request<Body>) -> Duration {
        Duration::ZERO
    }

    fn passes(&self) -> BoxFuture<'static, Result<(), BoxError>> {
        futures::future::ready(Ok(())).boxed()
    }
}
