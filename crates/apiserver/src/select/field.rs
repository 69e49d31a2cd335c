//! Field selectors. Each kind supports a few fields; others are refused.

use crate::kinds::{BuiltinKind, Resource};
use serde_json::Value;

/// A field selector.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    path: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses a selector such as `metadata.name=x,status.phase!=Failed`.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, value, true)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            if !is_supported(path, resource) {
                return Err(if resource.custom().is_some() {
                    format!("field label not supported: {path}")
                } else {
                    format!(
                        "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                });
            }
            terms.push(Term { path: path.to_owned(), value: value.to_owned(), equal });
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns true if the object matches. An absent field counts as empty.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (text_at(object, &term.path) == term.value) == term.equal)
    }
}

fn is_supported(path: &str, resource: &Resource) -> bool {
    if matches!(path, "metadata.name" | "metadata.namespace") {
        return true;
    }
    if let Some(custom) = resource.custom() {
        let mut fields = custom.version["selectableFields"].as_array().into_iter().flatten();
        return fields
            .any(|field| field["jsonPath"].as_str().is_some_and(|one| one.trim_start_matches('.') == path));
    }
    let fields: &[&str] = match resource.builtin() {
        Some(BuiltinKind::Pod) => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        Some(BuiltinKind::Node) => &["spec.unschedulable"],
        Some(BuiltinKind::Namespace) => &["status.phase"],
        Some(BuiltinKind::Secret) => &["type"],
        Some(BuiltinKind::ReplicaSet) => &["status.replicas"],
        Some(BuiltinKind::CoreEvent) => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Some(BuiltinKind::Event) => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        _ => &[],
    };
    fields.contains(&path)
}

fn text_at(object: &Value, path: &str) -> String {
    let value = path.split('.').fold(object, |value, field| &value[field]);
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // An absent boolean is false, an absent string is empty.
        Value::Null if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
