//! The clusters of an in-memory environment before a scenario starts.

use super::NAMESPACE;
use super::transport::refusal;
use crate::environment::Environment;
use crate::kinds::{CLUSTER, CONTROL_PLANE};
use five_spot_apiserver::{ApiServer, ApiServerConfig, ApiService, BoxError, Clock, ResponseBody};
use five_spot_standins::{Contract, StandInSettings, StandIns, Timing, cluster_api_crds, provider_crds};
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::fmt;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The cluster of the Nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// In the management cluster.
    OneCluster,
    /// In a separate cluster, which is reached with a kubeconfig.
    TwoClusters,
    /// The same, and Cluster API and the provider serve only v1beta1.
    OldClusterApi,
}

impl Layout {
    /// The version of Cluster API.
    pub(super) const fn contract(self) -> Contract {
        match self {
            Self::OneCluster | Self::TwoClusters => Contract::V1Beta2,
            Self::OldClusterApi => Contract::V1Beta1,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneCluster => "one-cluster",
            Self::TwoClusters => "two-clusters",
            Self::OldClusterApi => "old-cluster-api",
        })
    }
}

/// On the definition of a kind whose provider knows the contract v1beta2.
const NEW_CONTRACT_LABEL: &str = "cluster.x-k8s.io/v1beta2";

/// Our definition, which need not be derived again for every run.
static OURS: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(five_spot_api::crd()).expect("our CRD is JSON"));

pub(super) struct InMemoryClusters {
    pub(super) clock: Clock,
    pub(super) management: ApiServer,
    pub(super) workload: ApiServer,
    pub(super) other_cluster: ApiServer,
    pub(super) actors: StandInSettings,
    pub(super) task: AbortHandle,
}

pub(super) fn create_clusters(layout: Layout) -> InMemoryClusters {
    // Some seconds into a minute on a Monday morning, so that a full minute is something to wait for.
    let start = "2026-11-16T08:00:20Z".parse().expect("a timestamp");
    let clock = Clock::starting_at(start);
    let management = ApiServer::new(ApiServerConfig::new(clock.clone()));
    let ours = OURS.clone();
    let contract = layout.contract();
    let provider = provider_crds().into_iter().map(|crd| match contract {
        Contract::V1Beta1 if !crd["metadata"]["labels"][NEW_CONTRACT_LABEL].is_null() => of_old_contract(crd),
        Contract::V1Beta1 | Contract::V1Beta2 => crd,
    });
    for crd in cluster_api_crds(contract).into_iter().chain(provider).chain([ours]) {
        management.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    let workload = match layout {
        Layout::OneCluster => management.clone(),
        Layout::TwoClusters | Layout::OldClusterApi => {
            ApiServer::new(ApiServerConfig { seed: 1, ..ApiServerConfig::new(clock.clone()) })
        }
    };
    let other_cluster = ApiServer::new(ApiServerConfig { seed: 2, ..ApiServerConfig::new(clock.clone()) });
    management.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
    if layout != Layout::OneCluster {
        workload.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
    }
    workload.create("/api/v1/namespaces", &json!({"metadata": {"name": "5spot-system"}}));
    if layout != Layout::OneCluster {
        management.create("/api/v1/namespaces", &json!({"metadata": {"name": "5spot-system"}}));
    }
    let actors = StandInSettings::new(timing());
    let client = Client::new(WithoutClusters(management.service()), NAMESPACE);
    let stand_ins = StandIns::new(client, workload.client(NAMESPACE), clock.clone(), actors.clone());
    let task = tokio::spawn(stand_ins.run()).abort_handle();
    InMemoryClusters { clock, management, workload, other_cluster, actors, task }
}

/// The definition of a provider's kind as it was before there was anything but v1beta1.
fn of_old_contract(mut crd: Value) -> Value {
    let version = Contract::V1Beta1.version();
    let oldest = crd["spec"]["versions"].as_array_mut().and_then(Vec::pop);
    let mut oldest = oldest.expect("a definition has a version");
    for (field, value) in [("name", json!(version)), ("served", json!(true)), ("storage", json!(true))] {
        oldest[field] = value;
    }
    crd["spec"]["versions"] = json!([oldest]);
    crd["metadata"]["labels"] = json!({format!("cluster.x-k8s.io/{version}"): version});
    crd
}

/// As quick as the real control plane of the tests, so that the same timers fit both.
fn timing() -> Timing {
    Timing {
        bootstrap: Duration::from_millis(300),
        provision: Duration::from_secs(1),
        join: Duration::from_secs(1),
        release: Duration::from_secs(1),
        node_ready: Duration::from_secs(1),
        pod_start: Duration::from_secs(1),
        pod_stop: Duration::from_secs(1),
        ..Timing::default()
    }
}

/// A Cluster with an externally managed control plane.
pub(super) async fn make_cluster(env: &dyn Environment, name: &str) -> anyhow::Result<()> {
    env.apply(CONTROL_PLANE, json!({"metadata": {"name": name}, "spec": {}})).await?;
    let reference = json!({"apiGroup": CONTROL_PLANE.group, "kind": CONTROL_PLANE.kind, "name": name});
    let spec = json!({
        "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}, "controlPlaneRef": reference,
    });
    env.apply(CLUSTER, json!({"metadata": {"name": name}, "spec": spec})).await.map(drop)
}

/// The API for the stand-ins. One of them creates a Cluster whenever an object names one; here the scenario
/// creates Clusters.
#[derive(Clone)]
struct WithoutClusters(ApiService);

impl tower::Service<Request<Body>> for WithoutClusters {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut api = self.0.clone();
        Box::pin(async move {
            if request.method() == Method::POST && request.uri().path().ends_with("/clusters") {
                return Ok(refusal(StatusCode::FORBIDDEN, "Forbidden"));
            }
            tower::Service::call(&mut api, request).await
        })
    }
}
