//! Failed calls and failed reads.

use crate::transport::http::{TransportError, with_causes};
use crate::transport::operation::{Operation, Verb};
use five_spot_core::text;
use kube::core::response::reason;
use std::time::Duration;

/// The text of a failed request, in the server's own words where there are any.
///
/// A body that could not be parsed is not repeated: serde shows a piece of it.
pub(crate) fn explain(error: &kube::Error) -> String {
    if matches!(error, kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) {
        return "the response is not a valid Kubernetes response".to_owned();
    }
    let kube::Error::Api(status) = error else {
        return text::bounded(&with_causes(error), text::MAX_MESSAGE).into_owned();
    };
    let said = if status.message.is_empty() { &status.reason } else { &status.message };
    format!("{} ({})", text::bounded(said, text::MAX_MESSAGE), status.code)
}

/// A failed call: the operation, and the answer or the failure of the client.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {}", explain(source))]
pub struct CallError {
    /// The operation that failed. Boxed, because errors are moved through many results.
    pub operation: Box<Operation>,
    /// The answer, or the failure of the client.
    pub source: kube::Error,
}

impl CallError {
    pub(crate) fn new(operation: Operation, source: kube::Error) -> Self {
        Self { operation: Box::new(operation), source }
    }

    /// An operation that did not finish within its time limit. It may still be carried out.
    pub(crate) fn late(operation: Operation, limit: Duration) -> Self {
        Self::new(operation, kube::Error::Service(Box::new(TransportError::Deadline(limit))))
    }

    /// The status code of the answer, if there was one.
    pub fn code(&self) -> Option<u16> {
        let kube::Error::Api(status) = &self.source else { return None };
        Some(status.code)
    }

    /// True if the object has changed since it was read: reading and deciding again resolves it.
    pub fn is_stale(&self) -> bool {
        self.code() == Some(409)
    }

    /// True if the API server refuses the request and will refuse it until someone changes something.
    pub fn is_refused(&self) -> bool {
        matches!(self.code(), Some(400 | 403 | 405 | 413 | 415 | 422))
    }

    /// True if the API server rejects the object as too large, or as invalid by its schema.
    pub fn is_unacceptable(&self) -> bool {
        let kube::Error::Api(status) = &self.source else { return false };
        matches!(status.code, 413 | 422) || status.message.contains("too large")
    }

    /// True if the status of our object could not be written.
    pub fn is_status_write(&self) -> bool {
        self.operation.verb == Verb::WriteStatus
    }

    /// True if an object of Cluster API or of one of its providers could not be created or restored.
    pub fn is_cluster_api_apply(&self) -> bool {
        self.operation.is_cluster_api() && self.operation.verb == Verb::Apply
    }

    /// True if the admission policy of the Lease refused the write because another pod holds the Lease. Right after a
    /// takeover the API server's view of the Lease may lag: the same request succeeds a moment later.
    pub fn is_refused_by_lease_policy(&self) -> bool {
        let kube::Error::Api(status) = &self.source else { return false };
        matches!(status.code, 403 | 422) && status.message.contains("'5spot-fence'")
    }

    /// True if a write guard of this instance kept the request from being sent.
    pub fn is_guarded(&self) -> bool {
        let kube::Error::Service(source) = &self.source else { return false };
        matches!(source.downcast_ref::<TransportError>(), Some(TransportError::Guarded(_)))
    }
}

/// A list or watch that failed, so that a cache cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadFailure {
    pub(crate) kind: ReadFailureKind,
    pub(crate) message: String,
}

/// The kinds of [`ReadFailure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFailureKind {
    /// There is no such kind of object, in any version.
    NoSuchKind,
    /// The kind is served in another version only: there may be objects that this version does not show.
    OtherVersion,
    /// The controller is not permitted to read these objects.
    Forbidden,
    /// The server does not answer as it should.
    Unreachable,
}

impl ReadFailure {
    /// The failure that an error of the client stands for.
    pub(crate) fn of(error: &kube::Error) -> Self {
        let code = if let kube::Error::Api(status) = error { status.code } else { 0 };
        let kind = match code {
            404 => ReadFailureKind::NoSuchKind,
            401 | 403 => ReadFailureKind::Forbidden,
            _ => ReadFailureKind::Unreachable,
        };
        Self { kind, message: explain(error) }
    }

    /// The failure of a server that has not answered in time.
    pub(crate) fn late(limit: Duration) -> Self {
        let message = format!("no answer within {} s", limit.as_secs());
        Self { kind: ReadFailureKind::Unreachable, message }
    }
}

/// Turns "not found" into `None`, if the API server says so about the object itself.
pub(crate) fn or_absent<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if the API server says that there is no such object. A path that is not served is answered with the same code,
/// by the server or by a proxy, and says nothing about the object.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason == reason::NOT_FOUND)
}

/// True if the path is not served: the kind is gone, or a proxy answered.
pub(crate) fn is_unserved(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404) && !is_absent(error)
}
