//! Requests of the doctor: plain reads, each with a time limit, and a note of everything that may not be read.

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// The time for one answer. The doctor as a whole should take less than five seconds.
const ANSWER: Duration = Duration::from_secs(4);

/// The same for a workload cluster: its Secret is read before, and the logs of agents are read afterwards.
const WORKLOAD_ANSWER: Duration = Duration::from_secs(3);

/// The objects of a page of a list.
const PAGE: usize = 500;

/// The most pages of a list: 50,000 objects.
const PAGES: usize = 100;

/// Reads from one cluster.
pub struct Reader<'a> {
    client: Client,
    /// The cluster, for notes; empty for the management cluster.
    cluster: String,
    notes: &'a Notes,
    /// The time for one answer.
    limit: Duration,
}

/// The resources that may not or could not be read; each once.
#[derive(Default)]
pub struct Notes(Mutex<BTreeSet<String>>);

/// The answer of something that is no object.
pub struct Plain {
    pub status: StatusCode,
    pub body: String,
}

/// The reason for which something was not read.
pub enum Unread {
    /// There is no such object, or no such kind.
    Absent,
    /// The caller may not read it, or it could not be read; a note says so.
    Noted,
}

impl Notes {
    pub fn add(&self, note: String) {
        // A set that a panic has left behind is still a set of notes.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(note);
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().cloned().collect()
    }
}

impl<'a> Reader<'a> {
    pub const fn management(client: Client, notes: &'a Notes) -> Self {
        Self { client, cluster: String::new(), notes, limit: ANSWER }
    }

    pub const fn workload(client: Client, cluster: String, notes: &'a Notes) -> Self {
        Self { client, cluster, notes, limit: WORKLOAD_ANSWER }
    }

    pub const fn client(&self) -> &Client {
        &self.client
    }

    pub const fn notes(&self) -> &'a Notes {
        self.notes
    }

    /// An object. `what` names it in the note if it cannot be read.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, Unread> {
        let request = Request::get(path).body(Vec::new());
        let Ok(request) = request else { return Err(Unread::Absent) };
        match tokio::time::timeout(self.limit, self.client.request::<T>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            // An API server that lacks the kind answers 404, the sandbox 501.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 501) => Err(Unread::Absent),
            Ok(Err(error)) => Err(self.unread(what, &reason(&error))),
            Err(_) => Err(self.unread(what, &format!("no answer within {} s", self.limit.as_secs()))),
        }
    }

    /// The answer to any request, if there is one. A refusal is not noted.
    pub async fn quietly(&self, request: Request<Vec<u8>>) -> Option<Value> {
        tokio::time::timeout(self.limit, self.client.request(request)).await.ok()?.ok()
    }

    /// All objects of a list, page by page. `path` may have a query.
    pub async fn list(&self, path: &str, what: &str) -> Result<Vec<Value>, Unread> {
        let mut items = Vec::new();
        let mut token = String::new();
        let join = if path.contains('?') { '&' } else { '?' };
        for _ in 0..PAGES {
            let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
            let mut page: Value = self.get(&format!("{path}{join}limit={PAGE}{next}"), what).await?;
            if let Some(Value::Array(found)) = page.get_mut("items").map(Value::take) {
                items.extend(found);
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(more) => more.clone_into(&mut token),
                None => break,
            }
        }
        Ok(items)
    }

    /// The same; nothing if there is no such kind, `None` if it may not be read.
    pub async fn list_or_none(&self, path: &str, what: &str) -> Option<Vec<Value>> {
        match self.list(path, what).await {
            Ok(items) => Some(items),
            Err(Unread::Absent) => Some(Vec::new()),
            Err(Unread::Noted) => None,
        }
    }

    /// The answer of a pod through the API server, or the text of a log. `None` if the API server itself refuses, or if there
    /// is no answer within `limit`.
    pub async fn plain(&self, path: &str, what: &str, limit: Duration) -> Option<Plain> {
        let request = Request::get(path).body(Body::empty()).ok()?;
        let answer = tokio::time::timeout(limit, async {
            let response = self.client.send(request).await.map_err(|error| reason(&error))?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
            Ok::<_, String>(Plain { status, body: String::from_utf8_lossy(&body.to_bytes()).into_owned() })
        });
        let plain = match answer.await {
            Ok(Ok(plain)) => plain,
            Ok(Err(cause)) => {
                self.unread(what, &cause);
                return None;
            }
            Err(_) => {
                self.unread(what, &format!("no answer within {} s", limit.as_secs()));
                return None;
            }
        };
        // A `Status` is the API server's own answer.
        let refusal: Value = serde_json::from_str(&plain.body).unwrap_or_default();
        if !plain.status.is_success() && refusal["kind"] == "Status" {
            // The sandbox has neither logs nor endpoints.
            if plain.status == StatusCode::NOT_IMPLEMENTED {
                return None;
            }
            let said = refusal["message"].as_str().unwrap_or_default();
            self.unread(what, &format!("{said} ({})", plain.status.as_u16()));
            return None;
        }
        Some(plain)
    }

    fn unread(&self, what: &str, cause: &str) -> Unread {
        let cluster = if self.cluster.is_empty() { String::new() } else { format!(" of {}", self.cluster) };
        self.notes.add(format!("{what}{cluster}: {cause}"));
        Unread::Noted
    }
}

/// The reason for which a request failed, in the words of the API server where there are any.
pub fn reason(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return format!("{} ({})", status.message, status.code);
    }
    if matches!(error, kube::Error::SerdeError(_)) {
        return "the response is not a valid Kubernetes response".to_owned();
    }
    error.to_string()
}
