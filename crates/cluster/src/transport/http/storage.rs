//! The last sign that the storage behind an API server answers.
//!
//! An API server whose etcd hangs keeps its watches open, answers pings, and still sends bookmarks from its cache.
//! Only data that it has to read from or write to etcd shows that etcd answers: an event, an object, an accepted
//! write.

use super::Call;
use http::StatusCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The beginnings of what an API server sends in a watch although its storage does not answer: bookmarks, and the reason for
/// which it ends the watch.
const FROM_CACHE: [&[u8]; 2] = [br#"{"type":"BOOKMARK""#, br#"{"type":"ERROR""#];

/// Something that is created and never stored.
const ACCESS_REVIEWS: &str = "selfsubjectaccessreviews";

/// The time at which the storage last answered. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct StorageAnswers(Arc<Mutex<Instant>>);

impl Default for StorageAnswers {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl StorageAnswers {
    /// Records an answered request.
    pub(super) fn answered(&self, call: &Call, status: StatusCode) {
        // Lists and watches may be answered from a cache, and a request without permission is refused before
        // etcd is read.
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let is_write = call.writes() && call.resource != ACCESS_REVIEWS;
        let from_storage = is_write || call.verb == "get" && call.name.is_some();
        if from_storage && !is_refused && !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS
        {
            self.now();
        }
    }

    /// Records that the API server's own check has succeeded. One response alone does not count: the API server repeats
    /// the last result of the check for some seconds.
    pub(super) fn checked(&self) {
        self.now();
    }

    /// Records a part of a watch.
    pub(super) fn received(&self, data: &[u8]) {
        let is_event =
            |line: &[u8]| !line.is_empty() && !FROM_CACHE.iter().any(|beginning| line.starts_with(beginning));
        if data.split(|byte| *byte == b'\n').any(is_event) {
            self.now();
        }
    }

    /// The time since it last answered.
    pub(super) fn silence(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, Request};
    use tokio::time::advance;

    const MINUTE: Duration = Duration::from_mins(1);

    async fn silence_after(tell: impl FnOnce(&StorageAnswers)) -> Duration {
        let answers = StorageAnswers::default();
        advance(MINUTE).await;
        tell(&answers);
        answers.silence()
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_comes_from_the_storage_counts() {
        for (method, path, status, counts) in [
            (Method::GET, "/api/v1/nodes/a", 200, true),
            (Method::GET, "/api/v1/nodes/a", 404, true),
            (Method::GET, "/api/v1/nodes/a", 403, false),
            (Method::GET, "/api/v1/nodes", 200, false),
            (Method::GET, "/version", 200, false),
            (Method::GET, "/readyz", 200, false),
            (Method::POST, "/api/v1/namespaces/a/pods", 201, true),
            (Method::POST, "/api/v1/namespaces/a/pods", 504, false),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 201, false),
            (Method::POST, "/api/v1/namespaces/a/pods/b/eviction", 429, false),
        ] {
            let call = Call::of(&Request::builder().method(&method).uri(path).body(()).expect("a request"));
            let status = StatusCode::from_u16(status).expect("a status");
            let silence = silence_after(|answers| answers.answered(&call, status)).await;
            assert_eq!(silence.is_zero(), counts, "{method} {path} {status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bookmarks_and_errors_come_from_a_cache() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Node"}}"#.to_owned() + "\n";
        let event = r#"{"type":"MODIFIED","object":{"kind":"Node"}}"#.to_owned() + "\n";
        let error = r#"{"type":"ERROR","object":{"kind":"Status","code":500}}"#.to_owned() + "\n";
        for (data, counts) in
            [(bookmark.clone(), false), (error, false), (event.clone(), true), (bookmark + &event, true)]
        {
            let silence = silence_after(|answers| answers.received(data.as_bytes())).await;
            assert_eq!(silence.is_zero(), counts, "{data}");
        }
    }
}
