//! The result of a verb, before it is serialised.

use crate::error::ApiError;
use crate::verbs::WatchPlan;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

/// A response before serialisation, with the HTTP headers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub code: StatusCode,
    pub answer: Answer,
    /// The `Warning: 299` headers.
    pub warnings: Vec<String>,
    /// The `Content-Type`.
    pub content_type: &'static str,
    pub retry_after: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Json(Value),
    Bytes(Bytes),
    Watch(Box<WatchPlan>),
}

impl Reply {
    pub(crate) fn json(code: StatusCode, value: Value) -> Self {
        Self { answer: Answer::Json(value), ..Self::empty(code) }
    }

    pub(crate) fn ok(value: Value) -> Self {
        Self::json(StatusCode::OK, value)
    }

    pub(crate) fn text(code: StatusCode, text: &'static str) -> Self {
        Self {
            answer: Answer::Bytes(Bytes::from_static(text.as_bytes())),
            content_type: "text/plain; charset=utf-8",
            ..Self::empty(code)
        }
    }

    pub(crate) fn bytes(bytes: Vec<u8>, content_type: &'static str) -> Self {
        Self { answer: Answer::Bytes(bytes.into()), content_type, ..Self::empty(StatusCode::OK) }
    }

    pub(crate) fn watch(plan: WatchPlan) -> Self {
        Self { answer: Answer::Watch(Box::new(plan)), ..Self::empty(StatusCode::OK) }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    fn empty(code: StatusCode) -> Self {
        Self {
            code,
            answer: Answer::Bytes(Bytes::new()),
            warnings: Vec::new(),
            content_type: "application/json",
            retry_after: None,
        }
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        let retry_after = error.details["retryAfterSeconds"].as_u64();
        Self { retry_after, ..Self::json(error.code, error.to_status()) }
    }
}
