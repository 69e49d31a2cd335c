//! The answers of pods through the API server: their endpoints and logs, which the in-memory API server does not have.

use bytes::Bytes;
use five_spot_apiserver::ResponseBody;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The code of an answer that never comes.
const NO_ANSWER: u16 = 0;

/// Codes and texts.
type Answers = VecDeque<(u16, String)>;

/// Answers by path. A path that is asked again gives its next answer; the last one stays.
#[derive(Clone, Default)]
pub struct PodAnswers(Arc<Mutex<BTreeMap<String, Answers>>>);

impl PodAnswers {
    /// Sets the answers of a path: their codes and texts.
    pub fn set(&self, path: &str, answers: &[(u16, &str)]) {
        let answers = answers.iter().map(|(code, text)| (*code, (*text).to_owned())).collect();
        self.0.lock().expect("nobody panics with it").insert(path.to_owned(), answers);
    }

    /// A refusal by the API server, in its own words.
    pub fn forbid(&self, path: &str, message: &str) {
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": message,
        });
        self.set(path, &[(403, &status.to_string())]);
    }

    /// Gives no answer at a path.
    pub fn hang(&self, path: &str) {
        self.set(path, &[(NO_ANSWER, "")]);
    }

    /// True if a path gives no answer.
    pub fn hangs(&self, path: &str) -> bool {
        let all = self.0.lock().expect("nobody panics with it");
        all.get(path).and_then(VecDeque::front).is_some_and(|(code, _)| *code == NO_ANSWER)
    }

    /// The answer of a path, if it has one here.
    pub fn answer(&self, path: &str) -> Option<Response<ResponseBody>> {
        let mut all = self.0.lock().expect("nobody panics with it");
        let answers = all.get_mut(path)?;
        let (code, text) = if answers.len() > 1 { answers.pop_front()? } else { answers.front()?.clone() };
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
        let kind = if code == 403 { "application/json" } else { "text/plain" };
        let answer = Response::builder().status(code).header("content-type", kind).body(body);
        Some(answer.expect("a response"))
    }
}
