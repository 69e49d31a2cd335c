//! The name of an object, which the API server validates independently of the schema.

use super::cause::StatusCause;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

const MAX_NAME_LENGTH: usize = 253;

const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

static IS_SUBDOMAIN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("^{SUBDOMAIN}$")).expect("the pattern is well formed"));

/// Reports a missing or malformed name.
pub(super) fn check(object: &Value, causes: &mut Vec<StatusCause>) {
    let field = || "metadata.name".to_owned();
    let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty())
    else {
        causes.push(StatusCause::required(field(), "name or generateName is required"));
        return;
    };
    let value = Value::from(name);
    if name.len() > MAX_NAME_LENGTH {
        let detail = format!("must be no more than {MAX_NAME_LENGTH} bytes");
        causes.push(StatusCause::invalid(field(), &value, &detail));
    }
    if !IS_SUBDOMAIN.is_match(name) {
        let detail = format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN}')"
        );
        causes.push(StatusCause::invalid(field(), &value, &detail));
    }
}
