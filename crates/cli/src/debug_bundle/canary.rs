//! Canaries: credentials in every place that a bundle reads, none of which may be in it.

use super::bundle::Origin;
use super::gather;
use crate::cluster_access::CallerCluster;
use bytes::Bytes;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_cluster::{Connection, Dial, DialError, Raw, Route};
use five_spot_standins::{Contract, cluster_api_crds, provider_crds};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

/// Part of every credential in the test.
const CANARY: &str = "c4n4ryV4lue";

const PEM: &str = "-----BEGIN EC PRIVATE KEY-----\nc4n4ryV4lue\n-----END EC PRIVATE KEY-----";

/// A log with everything that may stand in one.
fn log() -> String {
    [
        "INFO starting".to_owned(),
        format!("Authorization: Bearer {CANARY}"),
        format!(r#"{{"fields":{{"password":"{CANARY}","resource":"desk-17"}}}}"#),
        format!(r#"{{"fields":{{"error":"{{\"token\":\"{CANARY}\"}}"}}}}"#),
        format!("GET https://admin:{CANARY}@example.org/"),
        PEM.to_owned(),
        PEM.replace('\n', "\\n"),
        format!("client-key-data: {CANARY}"),
        format!("kubeadm join --token {CANARY}"),
        format!("db:\n  password: |-\n    {CANARY}\n  name: x"),
        format!("password: a, {CANARY}'s"),
        format!(r#"{{"fields":{{"error":"{{\"a\":\"{{\\\"token\\\":\\\"x{CANARY}\\\"}}\"}}"}}}}"#),
        format!("GET https://admin:a/b@{CANARY}@example.org/"),
        "INFO the end".to_owned(),
    ]
    .join("\n")
}

/// Answers logs and proxied requests, which the in-memory API server does not serve.
fn with_logs(api: &ApiServer) -> Raw {
    let inner = Raw::new(api.service());
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let path = request.uri().path();
            if path.ends_with("/log") || path.contains("/proxy/") {
                let body = Full::new(Bytes::from(log())).map_err(|never| match never {});
                return Ok::<_, BoxError>(Response::new(UnsyncBoxBody::new(body)));
            }
            inner.oneshot(request).await
        }
    }))
}

struct NoWorkload;

impl Dial for NoWorkload {
    fn dial(&self, _: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        Box::pin(std::future::pending())
    }
}

async fn cluster() -> ApiServer {
    let clock = Clock::starting_at("2026-11-17T12:00:00Z".parse().expect("a time"));
    let api = ApiServer::new(ApiServerConfig::new(clock));
    let ours = serde_json::to_value(five_spot_api::crd()).expect("JSON");
    for crd in cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds()).chain([ours]) {
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    for namespace in ["5spot-system", "desks"] {
        api.create(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": namespace, "annotations": {"api-token": CANARY}}}),
        );
    }
    for namespace in ["5spot-system", "desks"] {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        api.create(&path, &json!({"metadata": {"name": "edge-kubeconfig"}, "stringData": {"value": CANARY}}));
    }
    api.create("/api/v1/namespaces/5spot-system/pods", &pod());
    api.create("/api/v1/namespaces/5spot-system/pods", &agent());
    let status = json!({"status": {"containerStatuses": [{
        "name": "agent", "restartCount": 0, "ready": true, "image": "x", "imageID": "x", "state": {}, "lastState": {},
    }]}});
    let pods: Api<Pod> = Api::namespaced(api.client("default"), "5spot-system");
    let patch = Patch::Merge(&status);
    pods.patch_status("5spot-reclaim-agent-x", &PatchParams::default(), &patch).await.expect("a status");
    let status = json!({"status": {"containerStatuses": [{
        "name": "controller", "restartCount": 1, "ready": true, "image": "x", "imageID": "x", "state": {}, "lastState": {},
    }]}});
    pods.patch_status("5spot-controller-0", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .expect("a status");
    api.create("/api/v1/namespaces/5spot-system/configmaps", &json!({
        "metadata": {"name": "reclaim-agent-desk-17"},
        "data": {"reclaim.toml": format!("password = \"{CANARY}\""), "kubeconfig": format!("a:\n  b: {CANARY}")},
    }));
    api.create("/apis/5spot.finos.org/v1alpha1/namespaces/desks/scheduledmachines", &machine());
    api
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "5spot-controller-0", "labels": {"app": "5spot-controller"}},
        "spec": {"containers": [{
            "name": "controller", "image": "5spot-controller",
            "env": [{"name": "DB_PASSWORD", "value": CANARY}, {"name": "SIGNING_KEY", "value": CANARY}],
            "args": ["--api-token", CANARY, format!("--password={CANARY}")],
        }]},
    })
}

fn agent() -> Value {
    json!({
        "metadata": {"name": "5spot-reclaim-agent-x", "labels": {"app": "5spot-reclaim-agent"}},
        "spec": {"containers": [{"name": "agent", "image": "5spot-reclaim-agent"}]},
    })
}

fn machine() -> Value {
    let applied = json!({"spec": {"token": CANARY}}).to_string();
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "desk-17", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"]}, "clusterName": "edge",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"files": [{"path": "/etc/x", "content": CANARY}], "args": ["--token", CANARY]},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": "192.0.2.17", "sshPrivateKey": PEM},
            },
        },
    })
}

#[tokio::test]
async fn no_canary_is_in_the_bundle() {
    let service = with_logs(&cluster().await);
    let now = Arc::new(|| "2026-11-17T12:00:00Z".parse().expect("a time"));
    let access = CallerCluster {
        connection: Connection::embedded(service, Arc::new(NoWorkload), now, "5spot"),
        default_namespace: "default".to_owned(),
        description: "in memory, server http://localhost/".to_owned(),
    };
    let bundle = gather(&access, None, jiff::SignedDuration::ZERO).await.expect("a bundle");
    let origin = Origin {
        created: "2026-11-17T12:00:00Z".to_owned(),
        program: "5spot".to_owned(),
        server: "http://localhost/".to_owned(),
        namespace: None,
    };
    let files = bundle.finish(&origin);
    let mut paths = Vec::new();
    for (path, content) in &files {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains(CANARY), "{path}: {text}");
        assert!(!text.contains("kind: Secret"), "{path} has a Secret: {text}");
        paths.push(path.strip_prefix("5spot-debug/").expect("the folder"));
    }
    // It is not empty because nothing was read.
    for expected in [
        "README.txt",
        "agents/configmaps.yaml",
        "agents/logs/5spot-reclaim-agent-x/agent.log",
        "controller/logs/5spot-controller-0/controller.log",
        "controller/logs/5spot-controller-0/controller.previous.log",
        "controller/metrics/5spot-controller-0.txt",
        "controller/pods.yaml",
        "controller/ready/5spot-controller-0.txt",
        "definitions/scheduledmachines.5spot.finos.org.yaml",
        "doctor.json",
        "events.txt",
        "explain/desks/desk-17.json",
        "index.json",
        "scheduledmachines/desks/desk-17.yaml",
        "versions.json",
    ] {
        assert!(paths.contains(&expected), "{expected} is missing: {paths:#?}");
    }
    let find = |path: &str| {
        let (_, content) = files.iter().find(|(it, _)| it == &format!("5spot-debug/{path}")).expect("a file");
        String::from_utf8_lossy(content).into_owned()
    };
    let log = find("controller/logs/5spot-controller-0/controller.log");
    assert!(
        log.contains("INFO starting") && log.contains("INFO the end") && log.contains("desk-17"),
        "{log}"
    );
    assert!(find("scheduledmachines/desks/desk-17.yaml").contains("clusterName: edge"));
}
