//! The answer to the question why an object is not gone. It serializes to the documented JSON.

use crate::object::ReportedObject;
use serde::Serialize;

/// The chain from an object to what blocks its deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The object in question.
    pub object: ReportedObject,
    /// Its state.
    pub state: DeletionState,
    /// The objects on the way, in the order in which they were examined. The first is the object itself.
    pub steps: Vec<Step>,
    /// The blockers. Those that need a person come first.
    pub causes: Vec<BlockingCause>,
}

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeletionState {
    /// It is being deleted, and something has to be done before that ends.
    Stuck,
    /// It is being deleted, and nothing indicates that this will not end by itself.
    Deleting,
    /// Its deletion was not requested.
    NotDeleting,
    /// It existed, and does not exist any more.
    Gone,
}

/// One object on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The object.
    pub object: ReportedObject,
    /// Its relation to the step before it.
    pub relation: String,
    /// The words of the object itself: times, finalizers, conditions.
    pub evidence: Vec<String>,
    /// The distance from the object in question.
    #[serde(skip)]
    pub depth: usize,
}

/// One blocker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockingCause {
    /// The object that blocks.
    pub object: ReportedObject,
    /// The explanation, in a sentence.
    pub cause: String,
    /// The facts that it follows from.
    pub evidence: Vec<String>,
    /// Commands that end it, the least harmful first. Empty if it ends by itself.
    pub fix: Vec<CauseFix>,
    /// True if it does not end by itself.
    #[serde(skip)]
    pub needs_a_person: bool,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseFix {
    /// The command, as a shell reads it.
    pub command: String,
    /// True if it can do no harm.
    pub safe: bool,
    /// The consequences: what it leaves behind, what may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl CauseFix {
    /// A command without side effects on anything else.
    pub fn safe(command: impl Into<String>) -> Self {
        Self { command: command.into(), safe: true, warning: None }
    }

    /// A command that changes something, and is harmless if the warning is heeded.
    pub fn safe_if(command: impl Into<String>, warning: impl Into<String>) -> Self {
        Self { command: command.into(), safe: true, warning: Some(warning.into()) }
    }

    /// A command that may lose something or leave something behind.
    pub fn harmful(command: impl Into<String>, warning: impl Into<String>) -> Self {
        Self { command: command.into(), safe: false, warning: Some(warning.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_has_the_documented_shape() {
        let pod = ReportedObject::namespaced("Pod", "shop", "web-0");
        let answer = Answer {
            object: ReportedObject::cluster_scoped("Namespace", "shop"),
            state: DeletionState::NotDeleting,
            steps: vec![Step { object: pod.clone(), relation: "remains".into(), evidence: vec![], depth: 1 }],
            causes: vec![BlockingCause {
                object: pod,
                cause: "its node is gone".into(),
                evidence: vec!["node desk-17 does not exist".into()],
                fix: vec![
                    CauseFix::safe("kubectl get pods"),
                    CauseFix::harmful("kubectl delete pod web-0", "it may run on"),
                ],
                needs_a_person: true,
            }],
        };
        let expected = json!({
            "object": {"kind": "Namespace", "name": "shop"},
            "state": "not-deleting",
            "steps": [{
                "object": {"kind": "Pod", "namespace": "shop", "name": "web-0"}, "relation": "remains", "evidence": [],
            }],
            "causes": [{
                "object": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
                "cause": "its node is gone",
                "evidence": ["node desk-17 does not exist"],
                "fix": [
                    {"command": "kubectl get pods", "safe": true},
                    {"command": "kubectl delete pod web-0", "safe": false, "warning": "it may run on"},
                ],
            }],
        });
        assert_eq!(serde_json::to_value(&answer).expect("JSON"), expected);
    }

    #[test]
    fn states_are_spelled_as_documented() {
        let spelled =
            [DeletionState::Stuck, DeletionState::Deleting, DeletionState::NotDeleting, DeletionState::Gone]
                .map(|state| json!(state));
        assert_eq!(spelled, ["stuck", "deleting", "not-deleting", "gone"].map(|text| json!(text)));
    }
}
