//! The validation of events: the newer form is validated, the older one hardly.

use crate::error::Fault;
use crate::kinds::BuiltinKind;
use crate::object;
use crate::strategy::names;
use serde_json::{Value, json};

pub(super) fn check(kind: BuiltinKind, value: &Value, old: Option<&Value>, faults: &mut Vec<Fault>) {
    // Validation uses the form in which the event was written.
    let is_new_form = kind == BuiltinKind::Event;
    let regarding = if is_new_form { &value["regarding"] } else { &value["involvedObject"] };
    let namespace = regarding["namespace"].as_str().unwrap_or_default();
    let own = object::namespace(value);
    if !is_new_form && namespace != own && !(namespace.is_empty() && own == "default") {
        faults.push(Fault::invalid(
            "involvedObject.namespace",
            &json!(namespace),
            "does not match event.namespace",
        ));
    }
    if !is_new_form {
        return;
    }
    if let Some(old) = old {
        for field in [
            "regarding",
            "reason",
            "note",
            "reportingController",
            "reportingInstance",
            "action",
            "related",
            "type",
            "eventTime",
        ] {
            if old[field] != value[field] {
                faults.push(Fault::invalid(field, &value[field], "field is immutable"));
            }
        }
        return;
    }
    if value["eventTime"].is_null() {
        faults.push(Fault::required("eventTime", ""));
    }
    for (field, most) in
        [("reportingController", 0), ("reportingInstance", 128), ("action", 128), ("reason", 128)]
    {
        let text = value[field].as_str().unwrap_or_default();
        if text.is_empty() {
            faults.push(Fault::required(field, ""));
        } else if most > 0 && text.len() > most {
            faults.push(Fault::invalid(field, &json!(text), format!("can have at most {most} characters")));
        }
    }
    let controller = value["reportingController"].as_str().unwrap_or_default();
    if !names::is_qualified_name(controller) {
        faults.push(Fault::invalid(
            "reportingController",
            &json!(controller),
            "name part must consist of alphanumeric characters",
        ));
    }
    if !["Normal", "Warning"].iter().any(|one| value["type"] == *one) {
        faults.push(Fault::invalid("type", &value["type"], "has invalid value"));
    }
    if value["note"].as_str().is_some_and(|note| note.len() > 1024) {
        faults.push(Fault::invalid("note", &json!(""), "can have at most 1024 characters"));
    }
}
