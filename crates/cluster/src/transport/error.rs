//! What can go wrong between us and a cluster.

use crate::transport::http::{DoorError, with_causes};
use five_spot_core::text;
use kube::core::response::reason;
use std::time::Duration;

/// An answer or a failure of the client, in the server's own words where there are any.
///
/// A body that could not be parsed is not repeated: serde shows a piece of it.
pub(crate) fn explain(error: &kube::Error) -> String {
    if matches!(error, kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) {
        return "the answer is not what Kubernetes would send".to_owned();
    }
    let kube::Error::Api(status) = error else {
        return text::bounded(&with_causes(error), text::MAX_MESSAGE).into_owned();
    };
    let said = if status.message.is_empty() { &status.reason } else { &status.message };
    format!("{} ({})", text::bounded(said, text::MAX_MESSAGE), status.code)
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

    /// A call that nobody waits for any longer.
    pub(crate) fn late(call: &str, patience: Duration) -> Self {
        let source = kube::Error::Service(Box::new(DoorError::Deadline(patience)));
        Self { call: call.to_owned(), source }
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

    /// The API server will not take what was written, as it is: it is too large, or not what its schema allows.
    pub fn is_too_much(&self) -> bool {
        let kube::Error::Api(status) = &self.source else { return false };
        matches!(status.code, 413 | 422) || status.message.contains("too large")
    }

    /// It was about the objects of Cluster API and its providers.
    pub fn concerns_cluster_api(&self) -> bool {
        self.call.starts_with("CAPI operation failed: ")
    }

    /// Something was to be made or mended.
    pub fn is_apply(&self) -> bool {
        self.call.starts_with("CAPI operation failed: apply ")
    }

    /// The API server's admission policy says that another pod holds the Lease. Right after a takeover its view of the
    /// Lease may lag: the same request succeeds a moment later.
    pub fn is_refused_by_lease_policy(&self) -> bool {
        let kube::Error::Api(status) = &self.source else { return false };
        matches!(status.code, 403 | 422) && status.message.contains("'5spot-fence'")
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

/// Nobody serves the path: the kind is gone, or a proxy stands in the way.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404) && !is_absent(error)
}
