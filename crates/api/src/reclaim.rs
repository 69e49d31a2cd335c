//! The contract between the controller and the reclaim agent: how an agent asks for its node to be
//! given back, and how the controller tells an agent what to look for.

mod config;

pub use config::{
    AgentConfig, ConfigError, DEFAULT_POLL_INTERVAL_MS, MAX_LIST_ENTRIES, MAX_PATTERN_BYTES,
    MAX_POLL_INTERVAL_MS, MIN_POLL_INTERVAL_MS, ParsedConfig,
};

use crate::names::SYSTEM_NAMESPACE;
use std::collections::BTreeMap;

/// On a Node, exactly `"true"`: its owner wants it back.
pub const REQUESTED: &str = "5spot.finos.org/reclaim-requested";
/// The one value of [`REQUESTED`] that counts.
pub const REQUESTED_TRUE: &str = "true";
/// On a Node: why, for instance `process-match: java`.
pub const REASON: &str = "5spot.finos.org/reclaim-reason";
/// On a Node: since when, RFC 3339.
pub const REQUESTED_AT: &str = "5spot.finos.org/reclaim-requested-at";

/// Where an agent finds its configuration: this namespace of the cluster that its node is in.
pub const CONFIG_NAMESPACE: &str = SYSTEM_NAMESPACE;
/// The key of the agent's ConfigMap.
pub const CONFIG_KEY: &str = "reclaim.toml";

/// What the name of an agent's ConfigMap begins with; the name of its node follows.
pub const CONFIG_NAME_PREFIX: &str = "reclaim-agent-";

/// The name of the ConfigMap of the agent on the named node.
pub fn config_map(node: &str) -> String {
    format!("{CONFIG_NAME_PREFIX}{node}")
}

/// A request to give a node back, as an agent writes it and the controller reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReclaimRequest {
    /// Why, in one line.
    pub reason: String,
    /// When the agent saw it; absent if the annotation is missing or not a time.
    pub requested_at: Option<jiff::Timestamp>,
}

impl ReclaimRequest {
    /// Reads the annotations of a Node. Anything but exactly `"true"` is no request; a request whose
    /// reason or time is missing is still a request, because an owner is waiting.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Option<Self> {
        if annotations.get(REQUESTED).map(String::as_str) != Some(REQUESTED_TRUE) {
            return None;
        }
        Some(Self {
            reason: annotations.get(REASON).cloned().unwrap_or_default(),
            requested_at: annotations.get(REQUESTED_AT).and_then(|time| time.parse().ok()),
        })
    }

    /// The annotations that say this request.
    pub fn to_annotations(&self) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::from([
            (REQUESTED.to_owned(), REQUESTED_TRUE.to_owned()),
            (REASON.to_owned(), self.reason.clone()),
        ]);
        if let Some(time) = self.requested_at {
            annotations.insert(REQUESTED_AT.to_owned(), time.to_string());
        }
        annotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        let request = ReclaimRequest {
            reason: "process-match: java".into(),
            requested_at: Some("2026-11-15T12:00:00Z".parse().unwrap()),
        };
        assert_eq!(ReclaimRequest::from_annotations(&request.to_annotations()), Some(request));
    }

    #[test]
    fn only_the_exact_word_is_a_request() {
        for value in ["True", "1", "yes", "", "true "] {
            let annotations = BTreeMap::from([(REQUESTED.to_owned(), value.to_owned())]);
            assert_eq!(ReclaimRequest::from_annotations(&annotations), None, "{value:?}");
        }
    }

    #[test]
    fn a_request_without_reason_or_with_a_broken_time_still_counts() {
        let annotations = BTreeMap::from([
            (REQUESTED.to_owned(), "true".to_owned()),
            (REQUESTED_AT.to_owned(), "yesterday".to_owned()),
        ]);
        let request = ReclaimRequest::from_annotations(&annotations).unwrap();
        assert_eq!(request, ReclaimRequest { reason: String::new(), requested_at: None });
    }
}
