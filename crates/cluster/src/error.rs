//! What can go wrong between us and a cluster.

use crate::door::DoorError;
use kube::core::response::reason;
use std::error::Error;

/// An error with everything that brought it about, in one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

/// An answer or a failure of the client, in the server's own words where there are any.
pub(crate) fn explain(error: &kube::Error) -> String {
    let kube::Error::Api(status) = error else { return with_causes(error) };
    let said = if status.message.is_empty() { &status.reason } else { &status.message };
    format!("{said} ({})", status.code)
}

/// What went wrong with a call.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {}", explain(source))]
pub struct CallError {
    /// What was tried, such as `patch Machine shop/a-machine`.
    pub call: String,
    /// What came of it.
    pub source: kube::Error,
}

impl CallError {
    pub(crate) fn new(call: impl Into<String>, source: kube::Error) -> Self {
        Self { call: call.into(), source }
    }

    /// The status code of the answer, if there was one.
    pub fn code(&self) -> Option<u16> {
        let kube::Error::Api(status) = &self.source else { return None };
        Some(status.code)
    }

    /// What we acted upon was not the latest: to look again and decide anew is the cure.
    pub fn is_stale(&self) -> bool {
        self.code() == Some(409)
    }

    /// The API server refuses it and will go on refusing it until someone changes something.
    pub fn is_refused(&self) -> bool {
        matches!(self.code(), Some(400 | 403 | 405 | 413 | 415 | 422))
    }

    /// It was about the objects of Cluster API and its providers.
    pub fn concerns_cluster_api(&self) -> bool {
        self.call.starts_with("CAPI operation failed: ")
    }

    /// Something was to be made or mended.
    pub fn is_apply(&self) -> bool {
        self.call.starts_with("CAPI operation failed: apply ")
    }

    /// It was not sent because this instance may not write now.
    pub fn is_fenced(&self) -> bool {
        let kube::Error::Service(source) = &self.source else { return false };
        matches!(source.downcast_ref::<DoorError>(), Some(DoorError::Fenced(_)))
    }
}

/// Turns "not there" into nothing, if it is the API server's word about the object.
pub(crate) fn or_absent<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The API server says that there is no such object. A path that nobody serves is answered with the same code, by the
/// server or by a proxy in its place, and tells nothing of the object.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason == reason::NOT_FOUND)
}
