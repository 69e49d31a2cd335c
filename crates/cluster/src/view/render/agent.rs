//! The ConfigMap with the configuration of a reclaim agent.

use crate::transport::key::ObjectKey;
use five_spot_api::names::{annotation, label};
use five_spot_api::reclaim::{AgentConfig, CONFIG_KEY, CONFIG_NAMESPACE, config_map};
use five_spot_core::ValidSpec;
use five_spot_core::action::NodeRef;
use serde_json::{Value, json};

pub(crate) fn agent_config(object: &ObjectKey, node: &NodeRef, spec: &ValidSpec) -> Value {
    let config = AgentConfig { match_commands: spec.kill_if_commands.clone(), ..AgentConfig::default() };
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map(node.name.as_str()),
            "namespace": CONFIG_NAMESPACE,
            "labels": {label::SCHEDULED_MACHINE: &*object.name},
            "annotations": {
                annotation::MADE_FOR: object.to_string(),
                annotation::AGENT_HASH: spec.agent_hash.to_string(),
                annotation::AGENT_NODE_UID: node.uid.as_str(),
            },
        },
        "data": {CONFIG_KEY: config.to_toml()},
    })
}
