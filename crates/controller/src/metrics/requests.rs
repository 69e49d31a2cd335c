//! The metrics and log lines of requests.

use super::Metrics;
use crate::logging::REQUESTS;
use five_spot_cluster::{Call, Exchange, RequestObserver};
use http::StatusCode;

/// The `code` of a request without an answer.
const NO_ANSWER: &str = "none";

/// The `code` of an answer whose status is none that HTTP defines: a hostile server could have a series made of each of
/// hundreds.
const OTHER: &str = "other";

impl RequestObserver for Metrics {
    fn answered(&self, exchange: &Exchange) {
        crate::health::progress();
        log_exchange(exchange);
        let code = code(exchange.status);
        self.families.api_requests.with_label_values(&[exchange.call.verb, &code]).inc();
        if let Some(result) = eviction(&exchange.call, exchange.status) {
            self.families.pod_evictions.with_label_values(&[result]).inc();
        }
    }
}

/// The value of the label `code`.
fn code(status: Option<StatusCode>) -> String {
    match status {
        None => NO_ANSWER.to_owned(),
        Some(status) if status.canonical_reason().is_none() => OTHER.to_owned(),
        Some(status) => status.as_u16().to_string(),
    }
}

/// Logs a request and its status code at debug level, without any content.
fn log_exchange(exchange: &Exchange) {
    let Call { verb, group, resource, subresource, namespace, name } = &exchange.call;
    tracing::debug!(
        target: REQUESTS,
        verb,
        group,
        api_resource = resource,
        subresource,
        api_namespace = namespace,
        api_name = name,
        code = exchange.status.map(|status| status.as_u16()),
        took_secs = exchange.took.as_secs_f64(),
        "API call"
    );
}

/// The result of an attempt to remove a pod: an eviction, or in an emergency a deletion. `None` for any other request.
fn eviction(call: &Call, status: Option<StatusCode>) -> Option<&'static str> {
    let is_core = call.group.is_empty() && call.resource == "pods" && call.name.is_some();
    let evicts = call.verb == "create" && call.subresource.as_deref() == Some("eviction");
    let deletes = call.verb == "delete" && call.subresource.is_none();
    if !is_core || !(evicts || deletes) {
        return None;
    }
    Some(match status {
        Some(StatusCode::TOO_MANY_REQUESTS) if evicts => "failure",
        // Gone, or another pod of the same name: either way this one has left.
        Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT) => "success",
        Some(status) if status.is_success() => "success",
        Some(_) | None => "error",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_server_that_invents_status_codes_makes_no_series() {
        let codes = (100..1000).filter_map(|code| StatusCode::from_u16(code).ok());
        let labels: BTreeSet<String> = codes.map(|status| code(Some(status))).collect();
        assert!(labels.len() < 80, "{} values of one label", labels.len());
        for expected in ["200", "409", "429", "503", OTHER] {
            assert!(labels.contains(expected), "{expected}");
        }
        assert_eq!(code(StatusCode::from_u16(777).ok()), OTHER);
        assert_eq!(code(None), NO_ANSWER);
    }
}
