//! The body of an error response: a bounded `Status` of Kubernetes, and never any other text.
//!
//! `kube` puts a body that is no `Status` into the message of its error, which ends up in a status that a tenant can
//! read. A kubeconfig may name a server that does not belong to the tenant.

use super::Limits;
use five_spot_core::text::{MAX_FIELD, bounded};
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// A message of the management cluster that is kept: what an admission webhook writes may be long.
const MANAGEMENT_MESSAGE: usize = 16 << 10;

/// The number of causes that are kept.
const CAUSES: usize = 16;

/// The fields of a `Status` that are passed on.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct Status {
    kind: String,
    #[serde(default = "api_version")]
    api_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(default)]
    code: u16,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causes: Option<Vec<Cause>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Cause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

fn api_version() -> String {
    "v1".to_owned()
}

/// The body of an error response, as a bounded `Status`.
pub(super) fn sanitised(code: StatusCode, body: &[u8], limits: &Limits) -> Vec<u8> {
    let status = serde_json::from_slice(body).ok().filter(|status: &Status| status.kind == "Status");
    let max =
        if *limits == Limits::MANAGEMENT { MANAGEMENT_MESSAGE } else { five_spot_core::text::MAX_MESSAGE };
    let status = status.map_or_else(|| unspecific(code), |status| status.within(max));
    // It consists of text and numbers, which can always be serialized.
    serde_json::to_vec(&Status { code: code.as_u16(), ..status }).unwrap_or_default()
}

/// Replaces a body that is not a `Status`.
fn unspecific(code: StatusCode) -> Status {
    Status {
        kind: "Status".to_owned(),
        api_version: api_version(),
        status: Some("Failure".to_owned()),
        message: Some(format!("the server answered HTTP {} without a Kubernetes Status", code.as_u16())),
        reason: None,
        details: None,
        code: code.as_u16(),
    }
}

impl Status {
    fn within(self, max: usize) -> Self {
        let details = self.details.map(|details| Details {
            name: short(details.name),
            group: short(details.group),
            kind: short(details.kind),
            uid: short(details.uid),
            causes: details.causes.map(|causes| {
                let short = |cause: Cause| Cause {
                    reason: short(cause.reason),
                    message: cause.message.map(|message| bounded(&message, max).into_owned()),
                    field: short(cause.field),
                };
                causes.into_iter().take(CAUSES).map(short).collect()
            }),
            retry_after_seconds: details.retry_after_seconds,
        });
        Self {
            kind: self.kind,
            api_version: api_version(),
            // `kube` reads no other word here.
            status: Some("Failure".to_owned()),
            message: self.message.map(|message| bounded(&message, max).into_owned()),
            reason: short(self.reason),
            details,
            code: self.code,
        }
    }
}

fn short(text: Option<String>) -> Option<String> {
    text.map(|text| bounded(&text, MAX_FIELD).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn check(body: &[u8]) -> Value {
        let status = sanitised(StatusCode::BAD_GATEWAY, body, &Limits::WORKLOAD);
        serde_json::from_slice(&status).expect("it is JSON")
    }

    #[test]
    fn a_body_that_is_no_status_is_never_repeated() {
        for body in ["s3cret", r#"{"token":"s3cret"}"#, r#"{"kind":"Secret","message":"s3cret"}"#, "", "[]"] {
            let status = check(body.as_bytes());
            assert_eq!(status["message"], "the server answered HTTP 502 without a Kubernetes Status");
            assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(502)));
        }
    }

    #[test]
    fn a_status_keeps_what_decisions_need_and_loses_the_rest() {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429,
            "message": "Cannot evict pod\nas it would violate the pod's disruption budget.",
            "details": {
                "name": "web-0", "retryAfterSeconds": 10, "more": "x",
                "causes": [{"reason": "DisruptionBudget", "message": "needs 1 healthy pod"}],
            },
            "more": "x".repeat(100_000),
        });
        let status = check(body.to_string().as_bytes());
        assert_eq!(status["message"], "Cannot evict pod\\nas it would violate the pod's disruption budget.");
        assert_eq!(status["reason"], "TooManyRequests");
        assert_eq!(status["details"]["retryAfterSeconds"], 10);
        assert_eq!(status["details"]["causes"][0]["reason"], "DisruptionBudget");
        assert_eq!((&status["more"], &status["details"]["more"]), (&Value::Null, &Value::Null));
        assert_eq!(status["code"], 502, "the code is that of the answer");
    }

    #[test]
    fn what_is_absent_stays_absent_for_the_parser_of_kube() {
        let body =
            json!({"kind": "Status", "details": {"causes": [{"reason": "DisruptionBudget"}]}}).to_string();
        let status = sanitised(StatusCode::TOO_MANY_REQUESTS, body.as_bytes(), &Limits::WORKLOAD);
        let status: kube::core::Status = serde_json::from_slice(&status).expect("kube can read it");
        assert_eq!(status.details.expect("details").causes[0].reason, "DisruptionBudget");
        let status = sanitised(StatusCode::NOT_FOUND, b"404 page not found", &Limits::MANAGEMENT);
        let status: kube::core::Status = serde_json::from_slice(&status).expect("kube can read it");
        assert_eq!((status.code, status.reason.as_str()), (404, ""), "it is not the API server's word");
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = "x".repeat(200_000);
        let body = json!({"kind": "Status", "message": long, "reason": long, "details": {"name": long}});
        assert!(
            sanitised(StatusCode::NOT_FOUND, body.to_string().as_bytes(), &Limits::WORKLOAD).len() < 3000
        );
    }

    proptest! {
        #[test]
        fn every_body_becomes_a_short_status(body in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(&check(&body)["kind"], "Status");
        }

        #[test]
        fn every_text_of_a_status_is_printable(message in ".*", reason in ".*") {
            let body = json!({"kind": "Status", "message": message, "reason": reason}).to_string();
            let status = check(body.as_bytes());
            for text in [&status["message"], &status["reason"]] {
                prop_assert!(!text.as_str().unwrap_or_default().contains(char::is_control));
            }
        }
    }
}
