//! The status of a `ScheduledMachine`, as it is kept.

use super::compact_text::CompactText;
use five_spot_api::ScheduledMachineStatus;

/// A status as text, without what it shares with others. Most statuses are seldom read, and in
/// their parsed form, with an allocation for each of many short words, they take ten times the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusText(CompactText);

impl StatusText {
    pub(crate) fn new(status: &ScheduledMachineStatus) -> Self {
        // Made of words and numbers, which can always be written down.
        Self(CompactText::new(&serde_json::to_string(status).unwrap_or_default()))
    }

    /// The parsed content.
    pub(crate) fn read(&self) -> ScheduledMachineStatus {
        serde_json::from_str(&self.0.text()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_written_down_is_what_is_read() {
        let status: ScheduledMachineStatus = serde_json::from_value(json!({
            "phase": "Active",
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "NodeReady",
                "message": "it \"says\" so",
                "lastTransitionTime": "2026-11-16T08:00:28Z",
                "observedGeneration": 2,
            }],
            "bootstrapRef": {"apiVersion": "b/v1", "kind": "B", "name": "b", "namespace": "n", "uid": "1"},
            "join": {"lastSeconds": 3, "recentSeconds": [3, 4]},
            "workloadCluster": {"secretName": "s"},
        }))
        .expect("a status");
        let text = StatusText::new(&status);
        assert_eq!(text.read(), status);
        assert_eq!(StatusText::new(&text.read()), text, "the same status is the same text");
        assert_eq!(
            StatusText::new(&ScheduledMachineStatus::default()).read(),
            ScheduledMachineStatus::default()
        );
    }
}
