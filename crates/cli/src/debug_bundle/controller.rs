//! The programs of 5-Spot in the cluster: manifests, logs, metrics and readiness.

use super::bundle::{Bundle, path_part};
use super::logs;
use super::read::{Reader, Selection};
use five_spot_api::names;
use five_spot_diagnose::controller_config::{ControllerConfig, POD_LABEL};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most controllers whose logs are read.
const PODS: usize = 20;

/// Collects what runs in our namespace.
pub async fn collect(reader: &Reader<'_>, bundle: &mut Bundle) {
    let here = |limit| Selection { namespace: Some(names::SYSTEM_NAMESPACE), limit, ..Selection::default() };
    let mut workloads = reader.list(bundle, "apps", "deployments", here(50)).await;
    if reader.catalog.by_plural("apps", "statefulsets").is_some() {
        workloads.extend(reader.list(bundle, "apps", "statefulsets", here(50)).await);
    }
    bundle.add_objects(
        "controller/workloads.yaml",
        "the Deployments and StatefulSets in the namespace of 5-Spot",
        &workloads,
    );
    let controllers = Selection { labels: Some(POD_LABEL), ..here(500) };
    let pods = reader.list(bundle, "", "pods", controllers).await;
    bundle.add_objects("controller/pods.yaml", "the pods of the controller", &pods);
    let leases = reader.list(bundle, "coordination.k8s.io", "leases", here(500)).await;
    bundle.add_objects("controller/leases.yaml", "the Leases of leaders, instances and machines", &leases);
    let maps = reader.list(bundle, "", "configmaps", here(500)).await;
    let maps: BTreeMap<String, Value> =
        maps.into_iter().map(|map| (text(&map["metadata"]["name"]), map)).collect();
    if pods.len() > PODS {
        let reason = format!("there are {} pods, and {PODS} logs are enough", pods.len());
        bundle.miss("logs of further controllers", &reason);
    }
    for pod in pods.iter().take(PODS) {
        logs::collect(reader, bundle, pod, "controller/logs").await;
        endpoints(reader, bundle, pod, &ControllerConfig::of_pod(pod, &maps)).await;
    }
}

/// `/metrics`, `/ready` and `/health` of a controller, by way of the API server.
async fn endpoints(reader: &Reader<'_>, bundle: &mut Bundle, pod: &Value, config: &ControllerConfig) {
    let name = text(&pod["metadata"]["name"]);
    for (port, path) in
        [(config.metrics_port, "metrics"), (config.health_port, "ready"), (config.health_port, "health")]
    {
        let what = format!("/{path} of pod {name}");
        let proxy = format!("/api/v1/namespaces/{}/pods/{name}:{port}/proxy/{path}", names::SYSTEM_NAMESPACE);
        // A controller that is not ready answers 503, and says why.
        let answer = match reader.try_text(&proxy).await {
            Ok(answer) => answer,
            Err(reason) if path == "ready" => format!("not ready, or it cannot be queried: {reason}\n"),
            Err(reason) => {
                bundle.miss(&what, &reason);
                continue;
            }
        };
        bundle.add_text(
            &format!("controller/{path}/{}.txt", path_part(&name)),
            &format!("the answer of {what}"),
            &answer,
        );
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
