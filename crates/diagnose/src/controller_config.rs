//! The configuration of a running controller, as its pod shows it: flags over environment over defaults, as in the program.

use five_spot_core::world::Policy;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The label of the controller's pods.
pub const POD_LABEL: &str = "app=5spot-controller";

/// The settings of a controller that answers depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// The settings that decisions depend on.
    pub policy: Policy,
    /// `--watch-namespace`; empty for all namespaces.
    pub namespaces: Vec<String>,
    /// `--management-nodes-namespace`.
    pub management_nodes: Vec<String>,
    /// `--enable-leader-election`.
    pub leader_election: bool,
    /// `--lease-name`.
    pub lease_name: String,
    /// `--metrics-port`.
    pub metrics_port: u16,
    /// `--health-port`.
    pub health_port: u16,
    /// `OPERATOR_INSTANCE_COUNT`.
    pub instances: u32,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            namespaces: Vec::new(),
            management_nodes: Vec::new(),
            leader_election: false,
            lease_name: "5spot-leader".to_owned(),
            metrics_port: 8080,
            health_port: 8081,
            instances: 1,
        }
    }
}

impl ControllerConfig {
    /// The names of the `ConfigMaps` that the variables of a pod's controller come from.
    pub fn config_maps_of(pod: &Value) -> BTreeSet<String> {
        let sources = pod["spec"]["containers"][0]["envFrom"].as_array();
        let names =
            sources.into_iter().flatten().filter_map(|source| source["configMapRef"]["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Reads the configuration of a pod. `config_maps` are those of its namespace, by name.
    pub fn of_pod(pod: &Value, config_maps: &BTreeMap<String, Value>) -> Self {
        let words = Words::of(&pod["spec"]["containers"][0], config_maps);
        let defaults = Self::default();
        let policy = Policy {
            finalizer_cleanup_timeout: words
                .number("--finalizer-cleanup-timeout-secs", "FINALIZER_CLEANUP_TIMEOUT_SECS")
                .map_or(defaults.policy.finalizer_cleanup_timeout, SignedDuration::from_secs),
            force_finalizer_on_timeout: words
                .flag("--force-finalizer-on-timeout", "FORCE_FINALIZER_ON_TIMEOUT")
                .unwrap_or(defaults.policy.force_finalizer_on_timeout),
        };
        let port = |flag: &str, variable: &str, default: u16| {
            words.number(flag, variable).and_then(|port| u16::try_from(port).ok()).unwrap_or(default)
        };
        let count = words.number("--instance-count", "OPERATOR_INSTANCE_COUNT");
        Self {
            policy,
            namespaces: words.all("--watch-namespace", ""),
            management_nodes: words.all("--management-nodes-namespace", "MANAGEMENT_NODES_NAMESPACES"),
            leader_election: words
                .flag("--enable-leader-election", "ENABLE_LEADER_ELECTION")
                .unwrap_or(false),
            lease_name: words.one("--lease-name", "LEASE_NAME").unwrap_or(defaults.lease_name),
            metrics_port: port("--metrics-port", "METRICS_PORT", defaults.metrics_port),
            health_port: port("--health-port", "HEALTH_PORT", defaults.health_port),
            instances: count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1),
        }
    }
}

/// The flags and variables of a container.
struct Words {
    flags: Vec<(String, Option<String>)>,
    variables: BTreeMap<String, String>,
}

impl Words {
    fn of(container: &Value, config_maps: &BTreeMap<String, Value>) -> Self {
        let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
        let mut variables = BTreeMap::new();
        for source in list("envFrom") {
            let name = source["configMapRef"]["name"].as_str().unwrap_or_default();
            let data = config_maps.get(name).and_then(|map| map["data"].as_object().cloned());
            for (key, value) in data.into_iter().flatten() {
                variables.insert(key, value.as_str().unwrap_or_default().to_owned());
            }
        }
        for variable in list("env") {
            if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str()) {
                variables.insert(name.to_owned(), value.to_owned());
            }
        }
        let words: Vec<String> = ["command", "args"]
            .into_iter()
            .flat_map(list)
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        Self { flags: flags(&words), variables }
    }

    fn all(&self, flag: &str, variable: &str) -> Vec<String> {
        let given: Vec<String> = self
            .flags
            .iter()
            .filter(|(name, _)| name == flag)
            .filter_map(|(_, value)| value.clone())
            .collect();
        let given = if given.is_empty() {
            self.variables.get(variable).cloned().into_iter().collect()
        } else {
            given
        };
        given
            .iter()
            .flat_map(|value| value.split(','))
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn one(&self, flag: &str, variable: &str) -> Option<String> {
        let given =
            self.flags.iter().rev().find(|(name, _)| name == flag).and_then(|(_, value)| value.clone());
        given.or_else(|| self.variables.get(variable).cloned()).filter(|value| !value.is_empty())
    }

    fn number(&self, flag: &str, variable: &str) -> Option<i64> {
        self.one(flag, variable).and_then(|value| value.parse().ok())
    }

    fn flag(&self, flag: &str, variable: &str) -> Option<bool> {
        match self.flags.iter().rev().find(|(name, _)| name == flag) {
            Some((_, None)) => Some(true),
            Some((_, Some(value))) if value.starts_with('-') => Some(true),
            Some((_, Some(value))) => Some(value != "false"),
            None => self.variables.get(variable).map(|value| value == "true"),
        }
    }
}

/// The flags of a command line with their values, whether joined by `=` or by a space.
fn flags(words: &[String]) -> Vec<(String, Option<String>)> {
    let mut flags = Vec::new();
    for (index, word) in words.iter().enumerate().filter(|(_, word)| word.starts_with("--")) {
        flags.push(match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word.clone(), words.get(index + 1).filter(|next| !next.starts_with("--")).cloned()),
        });
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(container: &Value, data: &Value) -> ControllerConfig {
        let maps = BTreeMap::from([("5spot-config".to_owned(), json!({"data": data}))]);
        ControllerConfig::of_pod(&json!({"spec": {"containers": [container]}}), &maps)
    }

    #[test]
    fn flags_win_over_variables_and_both_over_defaults() {
        assert_eq!(config(&json!({}), &json!({})), ControllerConfig::default());
        let container = json!({
            "args": ["--finalizer-cleanup-timeout-secs=120", "--management-nodes-namespace", "shop", "--enable-leader-election"],
            "envFrom": [{"configMapRef": {"name": "5spot-config"}}],
            "env": [{"name": "METRICS_PORT", "value": "9090"}, {"name": "POD_NAME", "valueFrom": {}}],
        });
        let data = json!({"FINALIZER_CLEANUP_TIMEOUT_SECS": "300", "FORCE_FINALIZER_ON_TIMEOUT": "false", "LEASE_NAME": "mine"});
        let read = config(&container, &data);
        assert_eq!(read.policy.finalizer_cleanup_timeout, SignedDuration::from_secs(120));
        assert!(!read.policy.force_finalizer_on_timeout);
        assert_eq!(read.management_nodes, ["shop"]);
        assert!(read.leader_election);
        assert_eq!((read.lease_name.as_str(), read.metrics_port, read.health_port), ("mine", 9090, 8081));
    }

    #[test]
    fn nonsense_is_ignored() {
        let read =
            config(&json!({"args": [1, null, "--metrics-port=x", "--lease-name="], "env": "x"}), &json!([]));
        assert_eq!(read, ControllerConfig::default());
    }
}
