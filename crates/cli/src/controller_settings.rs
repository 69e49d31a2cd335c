//! The settings of the controller that runs in the cluster, as far as the caller may see its pod.

use five_spot_api::names;
use five_spot_diagnose::controller_config::{ControllerConfig, POD_LABEL};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;

/// The configuration of the controller; `None` if it runs elsewhere or may not be seen.
pub async fn controller_config(client: &Client) -> Option<ControllerConfig> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), names::SYSTEM_NAMESPACE);
    let list = pods.list(&ListParams::default().labels(POD_LABEL)).await.ok()?;
    let pod = serde_json::to_value(list.items.first()?).ok()?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), names::SYSTEM_NAMESPACE);
    let mut config_maps = BTreeMap::new();
    for name in ControllerConfig::config_maps_of(&pod) {
        if let Ok(map) = api.get(&name).await {
            config_maps.insert(map.name_any(), serde_json::to_value(&map).unwrap_or_default());
        }
    }
    Some(ControllerConfig::of_pod(&pod, &config_maps))
}
