//! The metrics and log lines of requests.

use super::Metrics;
use five_spot_cluster::{Call, Exchange, RequestObserver};
use http::StatusCode;

/// The `code` of a request without an answer.
const NO_ANSWER: &str = "none";

impl RequestObserver for Metrics {
    fn answered(&self, exchange: &Exchange) {
        crate::health::progress();
        say(exchange);
        let code = exchange.status.map_or_else(|| NO_ANSWER.to_owned(), |status| status.as_u16().to_string());
        self.families.api_requests.with_label_values(&[exchange.call.verb, &code]).inc();
        if let Some(result) = eviction(&exchange.call, exchange.status) {
            self.families.pod_evictions.with_label_values(&[result]).inc();
        }
    }
}

/// Logs a request and its status code at debug level, without any content.
fn say(exchange: &Exchange) {
    let Call { verb, group, resource, subresource, namespace, name } = &exchange.call;
    tracing::debug!(
        target: "five_spot_controller::api",
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
