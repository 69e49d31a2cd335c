//! Evictions that are not allowed now.

use five_spot_core::text;
use five_spot_core::world::PodId;

/// The cause in the answer of an API server when a disruption budget is in the way.
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// The start of the message when a webhook has refused.
const WEBHOOK: &str = "admission webhook ";

/// A refused eviction. An overloaded server responds with the same code, but names no budget or webhook: that is a
/// failed call, not a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal<'a> {
    /// A disruption budget would be violated.
    Budget(&'a str),
    /// A webhook refused it, for example because the workload of the pod is migrated first.
    Webhook(&'a str),
}

impl<'a> Refusal<'a> {
    pub(super) fn of(error: &'a kube::Error) -> Option<Self> {
        let kube::Error::Api(status) = error else { return None };
        if status.code != 429 {
            return None;
        }
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        match causes.find(|cause| cause.reason == DISRUPTION_BUDGET) {
            Some(budget) => Some(Self::Budget(&budget.message)),
            None if status.message.starts_with(WEBHOOK) => Some(Self::Webhook(&status.message)),
            None => None,
        }
    }

    /// The message of the budget or the webhook.
    pub(super) const fn reason(self) -> &'a str {
        match self {
            Self::Budget(reason) | Self::Webhook(reason) => reason,
        }
    }

    /// Logs the refusal, with the number of times that it was repeated since it was last logged.
    pub(super) fn log(self, pod: &PodId, repeated: u64) {
        match self {
            Self::Budget(reason) => {
                let reason = &*text::bounded(reason, text::MAX_MESSAGE);
                tracing::warn!(%pod, reason, repeated, "Pod eviction blocked by PDB (HTTP 429)");
            }
            Self::Webhook(reason) => {
                let reason = &*text::bounded(reason, text::MAX_MESSAGE);
                tracing::warn!(%pod, reason, repeated, "Pod eviction refused by a webhook (HTTP 429)");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(status: serde_json::Value) -> kube::Error {
        kube::Error::Api(Box::new(serde_json::from_value(status).expect("a status")))
    }

    #[test]
    fn budgets_and_webhooks_refuse_and_a_busy_server_fails() {
        let cannot = "Cannot evict pod as it would violate the pod's disruption budget.";
        let needs = "The disruption budget web needs 1 healthy pods and has 1 currently";
        let budget = error(json!({
            "status": "Failure", "message": cannot, "reason": "TooManyRequests", "code": 429,
            "details": {"causes": [{"reason": "DisruptionBudget", "message": needs}]},
        }));
        assert_eq!(Refusal::of(&budget), Some(Refusal::Budget(needs)));
        let denied = "admission webhook \"moves.example.com\" denied the request: it is moved first";
        let webhook = error(json!({"status": "Failure", "message": denied, "reason": "", "code": 429}));
        assert_eq!(Refusal::of(&webhook), Some(Refusal::Webhook(denied)));
        let busy = "Too many requests, please try again later.";
        let busy = error(json!({"status": "Failure", "message": busy, "reason": "", "code": 429}));
        assert_eq!(Refusal::of(&busy), None);
        let forbidden = error(json!({"status": "Failure", "message": denied, "reason": "", "code": 403}));
        assert_eq!(Refusal::of(&forbidden), None);
    }
}
