//! The contract between the controller and the reclaim agent: the annotations by which an agent requests that its node is
//! returned to its owner, and the ConfigMap by which the controller configures the agent. Both programs write and parse
//! them with the code in this module.

mod config;

pub use config::{
    AgentConfig, ConfigError, DEFAULT_POLL_INTERVAL_MS, MAX_LIST_ENTRIES, MAX_PATTERN_BYTES,
    MAX_POLL_INTERVAL_MS, MIN_POLL_INTERVAL_MS, ParsedConfig,
};

use crate::names::SYSTEM_NAMESPACE;
use std::collections::BTreeMap;

/// The annotation that requests a reclaim of its Node, if the value is exactly `"true"`.
pub const REQUESTED: &str = "5spot.finos.org/reclaim-requested";
/// The only value of [`REQUESTED`] that has an effect.
pub const REQUESTED_TRUE: &str = "true";
/// The annotation with the reason of the request, such as `process-match: java`.
pub const REASON: &str = "5spot.finos.org/reclaim-reason";
/// The annotation with the time of the request, in RFC 3339.
pub const REQUESTED_AT: &str = "5spot.finos.org/reclaim-requested-at";

/// The maximum length of a reason, in bytes. Agents write no more, and the controller reads no more.
pub const MAX_REASON_BYTES: usize = 256;

/// The namespace of the agent's ConfigMap, in the cluster of its node.
pub const CONFIG_NAMESPACE: &str = SYSTEM_NAMESPACE;
/// The label selector of the agents' pods, in the namespace of their ConfigMaps. The DaemonSet sets the label.
pub const AGENT_SELECTOR: &str = "app=5spot-reclaim-agent";
/// The key of the configuration in the agent's ConfigMap.
pub const CONFIG_KEY: &str = "reclaim.toml";

/// The prefix of the name of an agent's ConfigMap. The name of its node follows.
pub const CONFIG_NAME_PREFIX: &str = "reclaim-agent-";

/// Returns the name of the ConfigMap of the agent on a node.
pub fn config_map(node: &str) -> String {
    format!("{CONFIG_NAME_PREFIX}{node}")
}

/// A request to return a node to its owner, as an agent writes it and the controller reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReclaimRequest {
    /// The reason, in one line.
    pub reason: String,
    /// The time of the request; absent if the annotation is missing or not a time.
    pub requested_at: Option<jiff::Timestamp>,
}

impl ReclaimRequest {
    /// Returns the request for a process that matched `pattern` at `time`.
    pub fn process_match(pattern: &str, time: jiff::Timestamp) -> Self {
        let mut reason = format!("process-match: {pattern}");
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        Self { reason, requested_at: Some(time) }
    }

    /// Reads the annotations of a Node. Any value other than exactly `"true"` is not a request. A request without a reason
    /// or a valid time still counts, because an owner is waiting.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Option<Self> {
        if annotations.get(REQUESTED).map(String::as_str) != Some(REQUESTED_TRUE) {
            return None;
        }
        Some(Self {
            reason: annotations.get(REASON).cloned().unwrap_or_default(),
            requested_at: annotations.get(REQUESTED_AT).and_then(|time| time.parse().ok()),
        })
    }

    /// Returns the annotations of this request.
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
    fn a_request_survives_a_round_trip() {
        let request = ReclaimRequest {
            reason: "process-match: java".into(),
            requested_at: Some("2026-11-15T12:00:00Z".parse().unwrap()),
        };
        assert_eq!(ReclaimRequest::from_annotations(&request.to_annotations()), Some(request));
    }

    /// An agent and a controller of different versions.
    #[test]
    fn annotations_of_other_versions_are_read() {
        let previous = [
            ("5spot.finos.org/reclaim-requested", "true"),
            ("5spot.finos.org/reclaim-reason", "process-match: java"),
            ("5spot.finos.org/reclaim-requested-at", "2026-11-15T12:00:00.125Z"),
        ];
        let mut annotations: BTreeMap<String, String> =
            previous.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let request = ReclaimRequest {
            reason: "process-match: java".into(),
            requested_at: Some("2026-11-15T12:00:00.125Z".parse().unwrap()),
        };
        assert_eq!(ReclaimRequest::from_annotations(&annotations), Some(request.clone()));
        assert_eq!(request.to_annotations(), annotations, "the version before reads what this one writes");
        annotations.insert("5spot.finos.org/reclaim-process".to_owned(), "4711".to_owned());
        assert_eq!(
            ReclaimRequest::from_annotations(&annotations),
            Some(request),
            "a later version adds some"
        );
    }

    #[test]
    fn a_long_pattern_is_cut_at_a_character_boundary() {
        let time = "2026-11-15T12:00:00Z".parse().unwrap();
        assert_eq!(ReclaimRequest::process_match("java", time).reason, "process-match: java");
        let long = ReclaimRequest::process_match(&"\u{1f600}".repeat(100), time);
        assert_eq!(long.reason.len(), 255, "15 bytes, and 60 characters of 4 bytes");
        assert_eq!(ReclaimRequest::from_annotations(&long.to_annotations()), Some(long));
    }

    #[test]
    fn only_exactly_true_is_a_request() {
        for value in ["True", "1", "yes", "", "true "] {
            let annotations = BTreeMap::from([(REQUESTED.to_owned(), value.to_owned())]);
            assert_eq!(ReclaimRequest::from_annotations(&annotations), None, "{value:?}");
        }
    }

    #[test]
    fn a_request_without_reason_or_valid_time_counts() {
        let annotations = BTreeMap::from([
            (REQUESTED.to_owned(), "true".to_owned()),
            (REQUESTED_AT.to_owned(), "yesterday".to_owned()),
        ]);
        let request = ReclaimRequest::from_annotations(&annotations).unwrap();
        assert_eq!(request, ReclaimRequest { reason: String::new(), requested_at: None });
    }
}
