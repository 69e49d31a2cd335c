//! Requests that are not sent, and answers that do not arrive or are refused.

use super::{Call, Transport};
use std::error::Error;
use std::time::Duration;
use tower::BoxError;
use tracing::warn;

/// The failures that one answer cancels: a cluster that has recovered gets requests at full rate after a few
/// answers.
const FORGIVEN: u32 = 10;

/// A request that was not sent or not answered, for a reason on our side. No variant repeats text of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No answer within the deadline. It may still have been carried out.
    #[error("no answer within {} s", .0.as_secs())]
    Deadline(Duration),
    /// Another request has waited too long for an answer of this cluster; nothing was sent.
    #[error("not sent: the cluster has not answered for {} s", .0.as_secs())]
    Silent(Duration),
    /// We may not write now; nothing was sent.
    #[error("not sent: {0}")]
    Guarded(&'static str),
    /// A workload cluster cannot be reached. All reasons have the same text: a kubeconfig may name any server, and
    /// if a tenant could distinguish a refused connection from a timeout, the controller would be a port scanner.
    /// The log has the reason.
    #[error("the cluster is unreachable")]
    Unreachable,
    /// The server redirects the request. Redirects are not followed.
    #[error("the server answered HTTP {0}, a redirect, which is not followed")]
    Redirected(u16),
    /// An answer has too many bytes.
    #[error("the answer has more than {limit} bytes")]
    AnswerTooLarge {
        /// The most that are read.
        limit: usize,
    },
    /// An event of a watch has too many bytes.
    #[error("an event of the watch has more than {limit} bytes")]
    LineTooLong {
        /// The most that are read.
        limit: usize,
    },
    /// A page of a list has too many objects.
    #[error("a page of the list has more than {limit} objects")]
    TooManyObjects {
        /// The most that are read.
        limit: usize,
    },
    /// An answer has too many parts, however small.
    #[error("the answer has more than {limit} JSON values")]
    TooManyValues {
        /// The most that are read.
        limit: usize,
    },
    /// A list has no end.
    #[error("the list has more than {limit} pages")]
    EndlessList {
        /// The most that are requested.
        limit: u32,
    },
    /// All answers of the cluster together take too much memory.
    #[error("the answers of the cluster take more than {limit} bytes of memory at once")]
    OverBudget {
        /// The most that they may take.
        limit: usize,
    },
    /// All answers of the clusters of a namespace together take too much memory.
    #[error("the answers of all clusters of the namespace take more than {limit} bytes of memory at once")]
    NamespaceOverBudget {
        /// The most that they may take.
        limit: usize,
    },
    /// Too many requests to the cluster; nothing was sent.
    #[error("not sent: more than {limit} requests to the cluster within a minute")]
    TooManyRequests {
        /// The most in a minute.
        limit: u32,
    },
}

/// The failures that show at which stage a connection failed. A tenant must not be able to distinguish them.
const fn tells_of_network(error: &TransportError) -> bool {
    matches!(error, TransportError::Deadline(_) | TransportError::Silent(_))
}

impl Transport {
    /// True if a request may be sent now. Records that a list begins or continues.
    pub(super) fn permit(&self, call: &Call, uri: &str) -> Result<(), TransportError> {
        if call.verb == "list" {
            self.watches.begins_anew(uri);
            let limit = self.limits.pages_per_list;
            if self.watches.next_page(uri) > limit {
                return Err(TransportError::EndlessList { limit });
            }
        }
        if !self.rates.requests.take_one() {
            return Err(TransportError::TooManyRequests { limit: self.limits.requests_per_minute });
        }
        // A request for the version checks whether the cluster has recovered.
        if !self.rates.failures.has_any() && !uri.ends_with("/version") {
            return Err(TransportError::Unreachable);
        }
        Ok(())
    }

    /// Records an answer.
    pub(super) fn answered(&self) {
        self.rates.failures.give_back(FORGIVEN);
    }

    /// Records a request without an answer that can be passed on. Returns the error for the caller.
    pub(super) fn failed(&self, call: &Call, error: BoxError) -> BoxError {
        let object = call.name.as_deref().unwrap_or_default();
        self.report(error, |text| format!("{} {} {object}: {text}", call.verb, call.resource))
    }

    /// Records that an open watch has ended with an error. Returns the error for the caller.
    pub(super) fn watch_failed(&self, watch: &str, error: BoxError) -> BoxError {
        self.report(error, |text| format!("watch {watch}: {text}"))
    }

    fn report(&self, error: BoxError, describe: impl FnOnce(&str) -> String) -> BoxError {
        if self.responsiveness.is_none() {
            // The management cluster is trusted, and its operator needs the details.
            return error;
        }
        let ours = error.downcast_ref::<TransportError>().cloned();
        // A request that was not sent is not a failure of the cluster.
        let sent = !matches!(
            ours,
            Some(
                TransportError::Silent(_)
                    | TransportError::Unreachable
                    | TransportError::Guarded(_)
                    | TransportError::TooManyRequests { .. }
            )
        );
        if sent {
            self.rates.failures.take(1);
        }
        let reported = match ours {
            Some(error) if !tells_of_network(&error) => error,
            Some(_) | None => TransportError::Unreachable,
        };
        let text = describe(&with_causes(&*error));
        let text = five_spot_core::text::bounded(&text, five_spot_core::text::MAX_MESSAGE);
        if sent && let Some(repeated) = self.warnings.note(&format!("{}: {text}", self.cluster)) {
            warn!(cluster = %self.cluster, error = %text, repeated, "Request to a workload cluster failed");
        }
        reported.into()
    }
}

/// An error with all its sources, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
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
