//! Benchmarks of the in-memory API server: a list of 10,000 objects (aim: below 100 ms) and a write (aim: below 200
//! µs).

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::hint::black_box;
use tower::Service as _;

const OBJECTS: usize = 10_000;

fn scheduled_machine(name: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": {"name": name},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Europe/Berlin"},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine", "spec": {}},
        },
    })
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}})
}

fn filled() -> ApiServer {
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let crd = serde_json::to_value(five_spot_api::crd()).expect("a CRD is JSON");
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    for number in 0..OBJECTS {
        api.create("/api/v1/namespaces/default/pods", &pod(&format!("pod-{number:05}")));
    }
    api
}

async fn send(api: &ApiServer, method: Method, path: &str, content_type: &str, body: String) -> usize {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Full::from(body))
        .expect("a request");
    let response = api.service().call(request).await.expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    response.into_body().collect().await.expect("a body").to_bytes().len()
}

fn benchmarks(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let api = filled();
    criterion.bench_function("list 10,000 pods", |bencher| {
        bencher.iter(|| {
            let bytes = runtime.block_on(send(&api, Method::GET, "/api/v1/pods", "", String::new()));
            black_box(bytes)
        });
    });
    let mut number = 0;
    criterion.bench_function("create a pod", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                pod(&format!("new-{number}")).to_string()
            },
            |body| {
                runtime.block_on(send(
                    &api,
                    Method::POST,
                    "/api/v1/namespaces/default/pods",
                    "application/json",
                    body,
                ))
            },
            BatchSize::SmallInput,
        );
    });
    let mut number = 0;
    criterion.bench_function("patch a pod's status", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                json!({"status": {"message": format!("change {number}")}}).to_string()
            },
            |body| {
                let path = "/api/v1/namespaces/default/pods/pod-00042/status";
                runtime.block_on(send(&api, Method::PATCH, path, "application/merge-patch+json", body))
            },
            BatchSize::SmallInput,
        );
    });
    let mut number = 0;
    criterion.bench_function("create a ScheduledMachine, with its schema and rules", |bencher| {
        bencher.iter_batched(
            || {
                number += 1;
                scheduled_machine(&format!("new-{number}")).to_string()
            },
            |body| {
                let path = "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
                runtime.block_on(send(&api, Method::POST, path, "application/json", body))
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
