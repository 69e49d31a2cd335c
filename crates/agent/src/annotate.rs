//! The request to give the node back: one JSON patch of the own Node.
//!
//! Its first operation tests the machine id, so that the API server refuses the patch if the Node is another machine, and
//! the agent needs no permission to read Nodes.

use crate::backoff::Backoff;
use crate::client::{Client, ClientError};
use five_spot_api::reclaim::ReclaimRequest;
use jiff::{Timestamp, TimestampRound, Unit};
use serde_json::{Value, json};
use std::time::Duration;
use tracing::{debug, error, info, warn};

/// The delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// The longest delay. The owner of the machine is waiting.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// The Node to annotate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNode {
    /// The name of the Node.
    pub name: String,
    /// The machine id of this host; `None` if the check is switched off.
    pub machine_id: Option<String>,
}

/// Returns the request for a process that matched `pattern` at `time`, with its time in milliseconds.
pub fn request_for(pattern: &str, time: Timestamp) -> ReclaimRequest {
    let milliseconds = TimestampRound::new().smallest(Unit::Millisecond).mode(jiff::RoundMode::Trunc);
    ReclaimRequest::process_match(pattern, time.round(milliseconds).unwrap_or(time))
}

/// The patch that sets the annotations of `request`.
///
/// JSON Patch cannot add to an object that does not exist. `with_annotations` is the form for a Node that has annotations,
/// as nearly every one does; the other form adds them and tests that there are none.
pub fn patch(node: &OwnNode, request: &ReclaimRequest, with_annotations: bool) -> Value {
    let mut operations = Vec::new();
    if let Some(machine_id) = &node.machine_id {
        operations.push(json!({"op": "test", "path": "/status/nodeInfo/machineID", "value": machine_id}));
    }
    let annotations = request.to_annotations();
    if with_annotations {
        for (key, value) in annotations {
            let path = format!("/metadata/annotations/{}", escape(&key));
            operations.push(json!({"op": "add", "path": path, "value": value}));
        }
    } else {
        operations.push(json!({"op": "test", "path": "/metadata/annotations", "value": null}));
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": annotations}));
    }
    Value::Array(operations)
}

/// Escapes a key for a JSON pointer.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Sends the patch once.
pub async fn send(client: &Client, node: &OwnNode, request: &ReclaimRequest) -> Result<(), ClientError> {
    let body = |with_annotations| patch(node, request, with_annotations).to_string().into_bytes();
    match client.patch_node(&node.name, body(true)).await {
        // Either a test failed or there are no annotations; the second form finds out.
        Err(error) if error.code() == Some(422) => match client.patch_node(&node.name, body(false)).await {
            Err(second) if second.code() == Some(422) => Err(error),
            other => other,
        },
        other => other,
    }
}

/// Sends the patch until the API server accepts it. A refusal may be temporary too: a Node that was created again has no
/// machine id until its kubelet reports one, and permissions can be granted late.
pub async fn send_until_accepted(client: &Client, node: &OwnNode, request: &ReclaimRequest) {
    let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY, &node.name);
    let started = tokio::time::Instant::now();
    let mut attempts: u32 = 1;
    while let Err(error) = send(client, node, request).await {
        let delay = backoff.next_delay();
        let retry_in_ms = delay.as_millis();
        match refusal(&error) {
            // The first, and then about one a minute.
            _ if attempts % 6 != 1 => {
                debug!(%error, attempts, retry_in_ms, "annotating the node failed — retrying");
            }
            Some(cause) => {
                error!(%error, attempts, retry_in_ms, cause, "annotating the node was refused — retrying");
            }
            None => warn!(%error, attempts, retry_in_ms, "annotating the node failed — retrying"),
        }
        attempts += 1;
        tokio::time::sleep(delay).await;
    }
    let match_to_annotated_ms = started.elapsed().as_millis();
    info!(
        node = node.name,
        reason = request.reason,
        attempts,
        match_to_annotated_ms,
        "node annotated — reclaim requested"
    );
}

/// The cause of a refusal that someone may have to remove.
pub fn refusal(error: &ClientError) -> Option<&'static str> {
    match error.code()? {
        403 | 422 if error.is_denied_by_admission() => {
            Some("an admission policy or webhook denied the patch; the error names it and its reason")
        }
        401 => Some("the token is not valid; the agent reads it again at every attempt"),
        403 => {
            Some("the ServiceAccount may not patch this Node: apply deploy/node-agent, and check NODE_NAME")
        }
        404 => Some("there is no Node with this name: it was deleted, or NODE_NAME is wrong"),
        422 => {
            Some("the machine id of the Node is not that of this host: NODE_NAME or MACHINE_ID_PATH is wrong")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(machine_id: Option<&str>) -> OwnNode {
        OwnNode { name: "node-1".into(), machine_id: machine_id.map(Into::into) }
    }

    fn request() -> ReclaimRequest {
        request_for("java", "2026-11-17T08:30:00.123456789Z".parse().expect("a time"))
    }

    #[test]
    fn the_patch_tests_the_machine_id_first() {
        let expected = json!([
            {"op": "test", "path": "/status/nodeInfo/machineID", "value": "b08dfa60"},
            {"op": "add", "path": "/metadata/annotations/5spot.finos.org~1reclaim-reason", "value": "process-match: java"},
            {"op": "add", "path": "/metadata/annotations/5spot.finos.org~1reclaim-requested", "value": "true"},
            {"op": "add", "path": "/metadata/annotations/5spot.finos.org~1reclaim-requested-at", "value": "2026-11-17T08:30:00.123Z"},
        ]);
        assert_eq!(patch(&node(Some("b08dfa60")), &request(), true), expected);
    }

    #[test]
    fn a_node_without_annotations_gets_them_as_a_whole() {
        let operations = patch(&node(Some("b08dfa60")), &request(), false);
        assert_eq!(operations[1], json!({"op": "test", "path": "/metadata/annotations", "value": null}));
        assert_eq!(operations[2]["value"]["5spot.finos.org/reclaim-requested"], "true");
        assert_eq!(operations[2]["value"].as_object().map(serde_json::Map::len), Some(3));
    }

    #[test]
    fn without_the_check_there_is_no_test() {
        let operations = patch(&node(None), &request(), true);
        assert!(operations.as_array().expect("a list").iter().all(|operation| operation["op"] == "add"));
    }

    #[test]
    fn a_refusal_by_a_policy_is_not_taken_for_another_machine() {
        let refused = |message: &str| {
            let code = http::StatusCode::UNPROCESSABLE_ENTITY;
            refusal(&ClientError::Refused { code, message: message.to_owned() })
        };
        let rejected = refused("the server rejected our request due to an error in our request");
        assert!(rejected.is_some_and(|cause| cause.contains("machine id")), "{rejected:?}");
        let denied = refused(
            "nodes \"desk-1\" is forbidden: ValidatingAdmissionPolicy '5spot-reclaim-agent-own-node' with binding \
             '5spot-reclaim-agent-own-node' denied request: the token of the reclaim agent is not bound to a node",
        );
        let denied = denied.expect("a cause");
        assert!(denied.contains("admission policy") && !denied.contains("machine id"), "{denied}");
    }

    #[test]
    fn a_reason_is_bounded_at_a_character() {
        let request = request_for(&"ü".repeat(1000), Timestamp::UNIX_EPOCH);
        assert!(request.reason.len() <= 256 && request.reason.starts_with("process-match: üü"));
    }
}
