//! Starting where the definition of our kind is not the one of this program. That the same holds on a real API server, and
//! what else can be wrong there, is tested end to end.

use crate::serving::{Running, api_without_ours};
use five_spot_api::ScheduledMachine;
use five_spot_apiserver::faults::{FaultPlan, FaultRule, FaultyService, InjectedFault, RequestKind, Trigger};
use five_spot_apiserver::{ApiServer, Clock, serve};
use http::StatusCode;
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn ours() -> Value {
    serde_json::to_value(five_spot_api::crd()).expect("it is JSON")
}

fn without_status_field(field: &str) -> Value {
    let mut definition = ours();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = schema["properties"]["status"]["properties"].as_object_mut().expect("fields");
    fields.remove(field).expect("there is such a field");
    definition
}

fn lend(api: &ApiServer) {
    let spec = json!({
        "schedule": {"daysOfWeek": ["mon-sun"]}, "clusterName": "edge",
        "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {}},
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine", "spec": {},
        },
    });
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": {"name": "desk"},
        "spec": spec,
    });
    api.create("/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines", &object);
}

#[tokio::test]
async fn nothing_is_written_before_the_crd_fits() {
    let (api, server) = api_without_ours().await;
    let running = Running::start(&server).await;
    running.answered("/ready", 503, &["is not installed, or serves no version"]).await;
    api.create(DEFINITIONS, &without_status_field("drain"));
    lend(&api);
    let before = api.revision();
    running.answered("/ready", 503, &["it does not contain status.drain"]).await;
    assert_eq!(api.revision(), before, "nothing was written");
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(api.client("default"), &ApiResource::from_gvk(&kind));
    let name = "scheduledmachines.5spot.finos.org";
    let patch = Patch::Merge(json!({"spec": ours()["spec"]}));
    definitions.patch(name, &PatchParams::default(), &patch).await.expect("it is there");
    running.answered("/ready", 200, &["ok\n"]).await;
    let objects: Api<ScheduledMachine> = Api::namespaced(api.client("default"), "default");
    while objects.get("desk").await.expect("it is there").status.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn refused_credentials_are_retried() {
    let (api, _) = api_without_ours().await;
    api.create(DEFINITIONS, &without_status_field("drain"));
    lend(&api);
    let before = api.revision();
    let faults = FaultPlan::new(Clock::system(), 1);
    for kind in [RequestKind::Read, RequestKind::Write, RequestKind::Watch] {
        let trigger = Trigger::Between(Timestamp::MIN, Timestamp::MAX);
        let fault = InjectedFault::Refuse(StatusCode::UNAUTHORIZED, None);
        faults.add(FaultRule { kind, path: String::new(), trigger, fault });
    }
    let service = FaultyService::new(api.service(), faults.clone());
    let server = serve(service, ([127, 0, 0, 1], 0).into()).await.expect("a port");
    let running = Running::start(&server).await;
    running.answered("/ready", 503, &["scheduledmachines are not synced: ", "401"]).await;
    running.answered("/health", 200, &["ok\n"]).await;
    faults.clear();
    running.answered("/ready", 503, &["it does not contain status.drain"]).await;
    assert_eq!(api.revision(), before, "nothing was written");
}
