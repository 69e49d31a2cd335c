//! The query part of a URL.

use super::route::percent_decode;
use crate::error::ApiError;

/// The query options of every verb, as they were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub label_selector: String,
    pub field_selector: String,
    pub limit: Option<usize>,
    pub continue_token: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub watch: bool,
    pub timeout_seconds: Option<u64>,
    pub allow_bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub dry_run: Vec<String>,
    pub field_manager: String,
    pub field_validation: String,
    pub force: Option<bool>,
    pub propagation_policy: Option<String>,
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    pub include_object: String,
}

impl Options {
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut options = Self::default();
        for (name, value) in query_pairs(query) {
            match name.as_str() {
                "labelSelector" => options.label_selector = value,
                "fieldSelector" => options.field_selector = value,
                "limit" => options.limit = Some(number(&name, &value)?).filter(|limit| *limit > 0),
                "continue" => options.continue_token = value,
                "resourceVersion" => options.resource_version = value,
                "resourceVersionMatch" => options.resource_version_match = value,
                "watch" => options.watch = flag(&value),
                "timeoutSeconds" => options.timeout_seconds = Some(number(&name, &value)?),
                "allowWatchBookmarks" => options.allow_bookmarks = flag(&value),
                "sendInitialEvents" => options.send_initial_events = Some(flag(&value)),
                "dryRun" => options.dry_run.push(value),
                "fieldManager" => options.field_manager = value,
                "fieldValidation" => options.field_validation = value,
                "force" => options.force = Some(flag(&value)),
                "propagationPolicy" => options.propagation_policy = Some(value),
                "gracePeriodSeconds" => options.grace_period_seconds = Some(number(&name, &value)?),
                "orphanDependents" => options.orphan_dependents = Some(flag(&value)),
                "includeObject" => options.include_object = value,
                // The server ignores unknown options, and `pretty` only changes whitespace.
                _ => {}
            }
        }
        Ok(options)
    }

    /// Returns true for a dry run; an error if its kind is unknown.
    pub(crate) fn is_dry_run(&self) -> Result<bool, ApiError> {
        dry_run(&self.dry_run)
    }
}

/// The only kind of dry run.
pub(crate) fn dry_run(values: &[String]) -> Result<bool, ApiError> {
    match values {
        [] => Ok(false),
        values if values.iter().all(|value| value == "All") => Ok(true),
        values => {
            let fault = crate::error::Fault::unsupported("dryRun", &serde_json::json!(values), &["All"]);
            let subject = crate::error::Subject { group: "meta.k8s.io", kind: "CreateOptions", name: "" };
            Err(ApiError::invalid(subject, &[fault]))
        }
    }
}

/// The decoded names and values of a query.
fn query_pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| percent_decode(&text.replace('+', " "));
            (decode(name), decode(value))
        })
        .collect()
}

/// `watch`, `watch=1` and `watch=true` are all true.
fn flag(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "0" | "f" | "false")
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, ApiError> {
    value
        .parse()
        .map_err(|_| ApiError::bad_request(format!("invalid value {value:?} of the query parameter {name}")))
}
