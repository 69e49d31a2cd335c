//! A raw HTTP request and the complete response: status code, warnings and body, for details that a client
//! library hides.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// The response of the server.
#[derive(Debug, Clone)]
pub struct WireResponse {
    /// The HTTP status.
    pub code: u16,
    /// The texts of its `Warning` headers.
    pub warnings: Vec<String>,
    /// The object, or the `Status` with the error.
    pub body: Value,
}

/// The reason why there was no response.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The request cannot be serialized.
    #[error("failed to write the request: {0}")]
    Request(#[from] http::Error),
    /// No response was received.
    #[error("failed to send a request to the API server: {0}")]
    Send(#[from] kube::Error),
    /// The response is not JSON.
    #[error("failed to read the answer: {0}")]
    Body(#[from] serde_json::Error),
}

impl WireResponse {
    /// The message of a `Status`.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Field, reason and message of each cause of a `Status`.
    pub fn causes(&self) -> Vec<ResponseCause> {
        let causes = self.body["details"]["causes"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        causes
            .into_iter()
            .flatten()
            .map(|cause| ResponseCause {
                field: text(&cause["field"]),
                reason: text(&cause["reason"]),
                message: text(&cause["message"]),
            })
            .collect()
    }
}

/// One reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseCause {
    /// The path of the field.
    pub field: String,
    /// The reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

/// Sends a request. `content_type` is that of the body, which for patches selects the kind of patch.
pub async fn ask(
    client: &Client,
    method: Method,
    path_and_query: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<WireResponse, WireError> {
    let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path_and_query)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, "application/json")
        .body(Body::from(bytes))?;
    let answer = client.send(request).await?;
    let code = answer.status().as_u16();
    let warnings = answer.headers().get_all(http::header::WARNING).iter();
    let warnings = warnings.filter_map(|value| value.to_str().ok()).map(warning_text).collect();
    let bytes = answer.into_body().collect_bytes().await?;
    Ok(WireResponse { code, warnings, body: serde_json::from_slice(&bytes)? })
}

/// The text from `299 - "text"`.
fn warning_text(header: &str) -> String {
    let quoted = header.split_once('"').map_or(header, |(_, rest)| rest);
    quoted.strip_suffix('"').unwrap_or(quoted).replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_have_no_code_and_quotes() {
        assert_eq!(warning_text(r#"299 - "unknown field \"spec.x\"""#), "unknown field \"spec.x\"");
    }
}
