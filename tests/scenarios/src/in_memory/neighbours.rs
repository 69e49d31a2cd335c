//! A hostile tenant in the cluster of a scenario: objects that name missing Secrets, and malicious API servers
//! behind its own.

use super::transport::{answer, refusal};
use crate::kinds::CLUSTER;
use five_spot_api::reclaim;
use five_spot_apiserver::{ApiServer, BoxError, ResponseBody};
use five_spot_cluster::Raw;
use http::{Request, Response, StatusCode, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::client::Body;
use serde_json::{Value, json};
use std::time::Duration;

/// The tenant's namespace.
pub(super) const HOSTILE_NAMESPACE: &str = "hostile";

/// The prefix of the names of its servers.
const SERVER_PREFIX: &str = "https://hostile-";

/// Objects that each name a different Secret that does not exist.
const WITHOUT_SECRET: usize = 4;

/// The time between two events of a watch that never becomes quiet.
const EVENT_EVERY: Duration = Duration::from_secs(10);

/// A text that fits into no status and no event.
const LONG_TEXT: usize = 300 << 10;

/// A malicious API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// It accepts requests and never answers.
    Silent,
    /// It answers with JSON of other types than those that were requested.
    WrongTypes,
    /// It refuses with a huge body that is not a `Status`.
    HugeRefusal,
    /// It claims to have the Nodes of the scenario, and repeatedly reports them as reclaimed.
    ForeignNodes,
}

impl Attack {
    const ALL: [Self; 4] = [Self::Silent, Self::WrongTypes, Self::HugeRefusal, Self::ForeignNodes];

    const fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::WrongTypes => "wrong-types",
            Self::HugeRefusal => "huge-refusal",
            Self::ForeignNodes => "foreign-nodes",
        }
    }
}

/// Creates everything that the tenant has.
pub(super) fn move_in(management: &ApiServer) {
    management.create("/api/v1/namespaces", &json!({"metadata": {"name": HOSTILE_NAMESPACE}}));
    let clusters = format!("/apis/{}/namespaces/{HOSTILE_NAMESPACE}/clusters", CLUSTER.api_version());
    let endpoint = json!({"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}});
    let cluster = json!({
        "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind, "metadata": {"name": "edge"}, "spec": endpoint,
    });
    management.create(&clusters, &cluster);
    for attack in Attack::ALL {
        let name = attack.name();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "w",
            "clusters": [{"name": "w", "cluster": {"server": format!("{SERVER_PREFIX}{name}.invalid:6443")}}],
            "users": [{"name": "w", "user": {"token": "none"}}],
            "contexts": [{"name": "w", "context": {"cluster": "w", "user": "w"}}],
        });
        let secret = json!({"metadata": {"name": name}, "stringData": {"value": kubeconfig.to_string()}});
        management.create(&format!("/api/v1/namespaces/{HOSTILE_NAMESPACE}/secrets"), &secret);
        lend(management, name);
    }
    for number in 0..WITHOUT_SECRET {
        lend(management, &format!("missing-{number}"));
    }
}

/// An object whose kubeconfig is in the Secret of the same name.
fn lend(management: &ApiServer, name: &str) {
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": {"name": name},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-sun"]},
            "priority": 100,
            "clusterName": "edge",
            "kubeconfigSecretRef": {"name": name, "key": "value"},
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": "192.0.2.1", "port": 22},
            },
        },
    });
    let path = format!("/apis/5spot.finos.org/v1alpha1/namespaces/{HOSTILE_NAMESPACE}/scheduledmachines");
    management.create(&path, &object);
}

/// The malicious server of this name, if it is one. It knows the Nodes of the scenario.
pub(super) fn server(name: &str, workload: &ApiServer) -> Option<Raw> {
    let name = name.strip_prefix(SERVER_PREFIX)?;
    let attack = Attack::ALL.into_iter().find(|attack| name.starts_with(attack.name()))?;
    let workload = workload.clone();
    Some(Raw::new(tower::service_fn(move |request: Request<Body>| {
        let (workload, uri) = (workload.clone(), request.uri().clone());
        async move { attack_request(attack, &workload, &uri).await }
    })))
}

async fn attack_request(
    attack: Attack,
    workload: &ApiServer,
    uri: &Uri,
) -> Result<Response<ResponseBody>, BoxError> {
    let query = uri.query().unwrap_or_default();
    let is_watch = query.split('&').any(|pair| pair == "watch=true");
    match attack {
        Attack::Silent => std::future::pending().await,
        Attack::WrongTypes => {
            let body = json!({"kind": 5, "metadata": "x", "items": {"a": "\u{1b}[31m\n"}, "major": []});
            Ok(answer(StatusCode::OK, "application/json", body.to_string()))
        }
        Attack::HugeRefusal => {
            Ok(answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "x".repeat(LONG_TEXT)))
        }
        Attack::ForeignNodes if !uri.path().ends_with("/nodes") => {
            Ok(refusal(StatusCode::NOT_FOUND, "NotFound"))
        }
        Attack::ForeignNodes if is_watch => Ok(endless_events(workload.clone())),
        Attack::ForeignNodes => {
            let list = json!({
                "apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"},
                "items": reclaimed_nodes(workload, 1).await?,
            });
            Ok(answer(StatusCode::OK, "application/json", list.to_string()))
        }
    }
}

/// A watch that reports all Nodes every few seconds.
fn endless_events(workload: ApiServer) -> Response<ResponseBody> {
    let frames = futures::stream::unfold(2_u64, move |version| {
        let workload = workload.clone();
        async move {
            tokio::time::sleep(EVENT_EVERY).await;
            let nodes = reclaimed_nodes(&workload, version).await;
            let event = |node| json!({"type": "MODIFIED", "object": node}).to_string() + "\n";
            let frame = nodes.map(|nodes| {
                let events: String = nodes.into_iter().map(event).collect();
                Frame::data(events.into())
            });
            Some((frame, version + 1))
        }
    });
    Response::new(StreamBody::new(frames).boxed_unsync())
}

/// The Nodes of the scenario, with reclaim requests.
async fn reclaimed_nodes(workload: &ApiServer, version: u64) -> Result<Vec<Value>, BoxError> {
    let nodes: kube::Api<Node> = kube::Api::all(workload.client("default"));
    let mut found = Vec::new();
    for node in nodes.list(&ListParams::default()).await? {
        let mut node = serde_json::to_value(node)?;
        node["metadata"]["resourceVersion"] = version.to_string().into();
        node["metadata"]["uid"] = "foreign".into();
        node["metadata"]["annotations"] = json!({
            (reclaim::REQUESTED): "true", (reclaim::REASON): format!("round {version}"),
        });
        found.push(node);
    }
    Ok(found)
}
