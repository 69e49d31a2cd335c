//! The attacks of a malicious server.

use crate::Wire;
use std::time::Duration;

/// The behaviour of a malicious server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attack {
    /// A body of valid JSON that never ends.
    EndlessBody,
    /// An empty list, and then a watch whose first event never ends.
    EndlessLine,
    /// Pages, each of which has a next one.
    EndlessPages,
    /// A page of millions of tiny objects: small to send, gigabytes when parsed.
    TinyObjects,
    /// A page with one object that has millions of tiny parts.
    TinyParts,
    /// Headers that arrive byte by byte and never end.
    SlowHead,
    /// A body that arrives byte by byte and never ends.
    SlowBody,
    /// JSON of wrong types, with this text in it.
    WrongTypes(String),
    /// A list of objects with these names, and then a watch without events.
    Names(Vec<String>),
    /// A list of Nodes of other tenants with requested reclaims, and then a watch that reports each of them
    /// repeatedly.
    ForeignNodes(Vec<String>),
    /// A redirect to this URL.
    Redirect(String),
    /// The connection is closed after this many bytes of a valid response.
    CloseAfter(usize),
    /// An error with this code and body.
    Refuse(u16, String),
}

const EMPTY_LIST: &str = r#"{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;

/// The head of a response with it as the body.
const EMPTY_LIST_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 79\r\n\r\n";

/// The number of bytes per write.
const CHUNK: usize = 64 << 10;

impl Attack {
    /// The length of the response that [`Attack::CloseAfter`] truncates.
    pub const RESPONSE_BYTES: usize = EMPTY_LIST_HEAD.len() + EMPTY_LIST.len();

    /// Responds to a request. Returns true if the connection stays open.
    pub(crate) async fn carry_out(&self, request: &str, wire: &mut Wire<'_>) -> std::io::Result<bool> {
        let watches = request.contains("watch=true") || request.contains("watch=1");
        match self {
            Self::EndlessBody => {
                wire.chunked_head().await?;
                wire.chunk(br#"{"kind":"List","items":[{"metadata":{"name":""#).await?;
                endless(wire).await
            }
            Self::EndlessLine if watches => {
                wire.chunked_head().await?;
                wire.chunk(br#"{"type":"ADDED","object":{"metadata":{"name":""#).await?;
                endless(wire).await
            }
            Self::EndlessPages if !watches => {
                let items = vec![r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#; 50].join(",");
                let metadata = r#"{"resourceVersion":"1","continue":"more"}"#;
                let page = format!(r#"{{"kind":"NodeList","metadata":{metadata},"items":[{items}]}}"#);
                wire.whole(200, "", &page).await?;
                Ok(true)
            }
            Self::TinyObjects => {
                wire.chunked_head().await?;
                wire.chunk(br#"{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[{}"#).await?;
                // Ten million of them are 30 MB, which is within the size limit of a page.
                let objects = ",{}".repeat(CHUNK / 3);
                for _ in 0..460 {
                    wire.chunk(objects.as_bytes()).await?;
                }
                wire.chunk(b"]}").await?;
                wire.chunk(b"").await?;
                Ok(true)
            }
            Self::TinyParts => {
                wire.chunked_head().await?;
                let start = r#"{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"},
                    "spec":{"containers":[{"name":""}"#;
                wire.chunk(start.as_bytes()).await?;
                let parts = r#",{"name":""}"#.repeat(CHUNK / 12);
                for _ in 0..460 {
                    wire.chunk(parts.as_bytes()).await?;
                }
                wire.chunk(b"]}}]}").await?;
                wire.chunk(b"").await?;
                Ok(true)
            }
            Self::SlowHead => {
                for byte in b"HTTP/1.1 200 OK\r\nx-slow: ".iter().chain(std::iter::repeat(&b'a')) {
                    wire.send(&[*byte]).await?;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Ok(false)
            }
            Self::SlowBody => {
                wire.chunked_head().await?;
                loop {
                    wire.chunk(b" ").await?;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
            Self::WrongTypes(text) => {
                let body =
                    format!(r#"{{"kind":"{text}","metadata":"{text}","items":"{text}","major":["{text}"]}}"#);
                wire.whole(200, "", &body).await?;
                Ok(true)
            }
            Self::Names(names) if !watches => {
                wire.whole(200, "", &list_of(names)).await?;
                Ok(true)
            }
            Self::ForeignNodes(names) if watches => report_without_end(names, wire).await,
            Self::ForeignNodes(names) => {
                let nodes: Vec<String> = names.iter().map(|name| reclaimed_node(name, 1)).collect();
                wire.whole(200, "", &list("NodeList", &nodes)).await?;
                Ok(true)
            }
            Self::EndlessLine => {
                wire.whole(200, "", EMPTY_LIST).await?;
                Ok(true)
            }
            Self::EndlessPages | Self::Names(_) => {
                wire.chunked_head().await?;
                std::future::pending().await
            }
            Self::Redirect(location) => {
                wire.whole(302, &format!("location: {location}\r\n"), "").await?;
                Ok(true)
            }
            Self::CloseAfter(bytes) => {
                let answer = [EMPTY_LIST_HEAD, EMPTY_LIST].concat();
                wire.send(&answer.as_bytes()[..(*bytes).min(answer.len())]).await?;
                Ok(false)
            }
            Self::Refuse(code, body) => {
                wire.whole(*code, "", body).await?;
                Ok(true)
            }
        }
    }
}

async fn endless(wire: &mut Wire<'_>) -> std::io::Result<bool> {
    let text = vec![b'a'; CHUNK];
    loop {
        wire.chunk(&text).await?;
    }
}

/// A list of Nodes or pods with these names, which are inserted into the JSON without escaping.
fn list_of(names: &[String]) -> String {
    let object = |name: &String| {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{name}","uid":"1","resourceVersion":"1"}},
                "spec":{{"containers":[]}}}}"#
        )
    };
    let items: Vec<String> = names.iter().map(object).collect();
    list("List", &items)
}

fn list(kind: &str, items: &[String]) -> String {
    format!(r#"{{"kind":"{kind}","metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#, items.join(","))
}

/// A watch that reports the Nodes of other tenants, one after the other.
async fn report_without_end(names: &[String], wire: &mut Wire<'_>) -> std::io::Result<bool> {
    wire.chunked_head().await?;
    let versions = 2_u64..;
    for (name, version) in names.iter().cycle().zip(versions) {
        let event = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", reclaimed_node(name, version));
        wire.chunk(event.as_bytes()).await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(false)
}

/// A Node with a requested reclaim: it has the annotations of the reclaim agent.
fn reclaimed_node(name: &str, version: u64) -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": format!("foreign-{name}"), "resourceVersion": version.to_string(),
            "labels": {"example.org/version": version.to_string()},
            "annotations": {
                "5spot.finos.org/reclaim-requested": "true",
                "5spot.finos.org/reclaim-reason": "process-match: java",
                "5spot.finos.org/reclaim-requested-at": "2026-01-01T00:00:00Z",
            },
        },
        "spec": {},
        // The values alternate, so that no cache ignores an event as old.
        "status": {"conditions": [{
            "type": "Ready", "status": if version.is_multiple_of(2) { "True" } else { "False" },
        }]},
    })
    .to_string()
}
