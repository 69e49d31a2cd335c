//! The ConfigMap that tells a reclaim agent what to look for.

use crate::key::ObjectKey;
use five_spot_api::names::{annotation, label};
use five_spot_api::reclaim::{CONFIG_KEY, CONFIG_NAMESPACE, config_map};
use five_spot_core::ValidSpec;
use five_spot_core::world::NodeName;
use serde_json::{Value, json};

/// How often an agent that polls looks, unless its ConfigMap is edited.
const POLL_INTERVAL_MS: u32 = 250;

pub(crate) fn agent_config(object: &ObjectKey, node: &NodeName, spec: &ValidSpec) -> Value {
    // A list of basic strings is written the same in TOML and in JSON.
    let commands = Value::from(spec.kill_if_commands.clone());
    let toml = format!(
        "match_commands = {commands}\nmatch_argv_substrings = []\npoll_interval_ms = {POLL_INTERVAL_MS}\n"
    );
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map(node.as_str()),
            "namespace": CONFIG_NAMESPACE,
            "labels": {label::SCHEDULED_MACHINE: &*object.name},
            "annotations": {
                annotation::MADE_FOR: object.to_string(),
                annotation::AGENT_HASH: spec.agent_hash.to_string(),
            },
        },
        "data": {CONFIG_KEY: toml},
    })
}
