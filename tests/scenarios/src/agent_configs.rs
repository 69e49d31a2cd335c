//! The ConfigMaps of reclaim agents, in the workload cluster.

use crate::environment::Environment;
use anyhow::Context as _;
use five_spot_api::reclaim::{CONFIG_NAMESPACE, config_map};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use std::time::Duration;

/// The polling interval: they are in a namespace that scenarios share.
const LOOK: Duration = Duration::from_millis(200);

/// The ConfigMaps of all agents.
pub(crate) fn agent_configs(env: &dyn Environment) -> Api<ConfigMap> {
    Api::namespaced(env.workload(), CONFIG_NAMESPACE)
}

/// Waits until the ConfigMap of the agent on a node is as wanted; `None` if there is none.
pub(crate) async fn until_agent_config(
    env: &dyn Environment,
    node: &str,
    wanted: impl Fn(Option<&ConfigMap>) -> bool,
) -> anyhow::Result<()> {
    let (configs, name) = (agent_configs(env), config_map(node));
    let search = async {
        while !wanted(configs.get_opt(&name).await?.as_ref()) {
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(())
    };
    let found = tokio::time::timeout(env.pace().wait_limit, search).await;
    found.with_context(|| format!("the ConfigMap {name} never was as wanted"))?
}
