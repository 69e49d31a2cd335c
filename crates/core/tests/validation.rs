//! The table of good and bad objects, against the controller's own validation: it must refuse whatever
//! the CRD refuses, at the same field, because the CRD in a cluster may be older than the program.

#[path = "../../../tests/crd/table.rs"]
mod table;

use five_spot_api::ScheduledMachineSpec;
use five_spot_core::{FieldError, ValidSpec, check_name};
use serde_json::Value;
use table::{Case, Expected, Refusal, cases};

/// Returns the invalid fields of an object, or one error if it cannot be parsed.
fn errors(case: &Case) -> Vec<FieldError> {
    let name = case.object["metadata"]["name"].as_str().unwrap_or_default();
    let mut errors: Vec<FieldError> = check_name(name).err().into_iter().collect();
    match serde_json::from_value::<ScheduledMachineSpec>(as_stored(&case.object["spec"])) {
        Ok(spec) => errors.extend(ValidSpec::parse(&spec).err().unwrap_or_default()),
        Err(unreadable) => errors.push(FieldError::new("", unreadable.to_string())),
    }
    errors
}

/// Returns a value as the API server stores it: a null is replaced by the default or removed.
fn as_stored(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), as_stored(value)))
            .collect(),
        // A whole number is one, however it was written.
        Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {
            serde_json::from_str(number.to_string().trim_end_matches(".0")).expect("a whole number")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.clone(),
    }
}

/// A rule may sit on a field or on what contains it. Where it is a rule of ours, its sentence is the same.
fn is_this(refusal: &Refusal, error: &FieldError) -> bool {
    // The API server writes `labels[rack]` for a rule and `labels.rack` for a bound.
    let (ours, theirs) = (error.field.replace(['[', ']'], "."), refusal.field.replace(['[', ']'], "."));
    let same_place = ours.starts_with(&theirs) || theirs.starts_with(&ours);
    let by_rule = refusal.reason == "FieldValueInvalid" && refusal.message.starts_with("must ");
    same_place && (!by_rule || error.field.is_empty() || error.message.contains(&refusal.message))
}

/// The defaults of the CRD are the defaults of the types.
fn check_defaults(case: &Case) {
    let Expected::Accepted { becomes } = &case.expected else {
        return;
    };
    let Ok(spec) = serde_json::from_value::<ScheduledMachineSpec>(as_stored(&case.object["spec"])) else {
        return;
    };
    let object = serde_json::json!({ "spec": spec });
    for (pointer, value) in becomes.iter().filter(|(pointer, _)| pointer.starts_with("/spec")) {
        assert_eq!(object.pointer(pointer).unwrap_or(&Value::Null), value, "{}: {pointer}", case.name);
    }
}

#[test]
fn every_spec_that_the_crd_accepts_is_valid() {
    let accepted: Vec<Case> =
        cases().into_iter().filter(|case| matches!(case.expected, Expected::Accepted { .. })).collect();
    assert!(accepted.len() > 50, "only {} cases", accepted.len());
    for case in &accepted {
        check_defaults(case);
    }
    let refused: Vec<_> = accepted
        .iter()
        .map(|case| (&case.name, errors(case)))
        .filter(|(_, errors)| !errors.is_empty())
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn the_parser_rejects_what_the_crd_rejects() {
    let mut refused = 0;
    let mut wrong = Vec::new();
    for case in cases() {
        let Expected::Refused(refusal) = &case.expected else {
            continue;
        };
        // Unknown fields, a missing name, wrong types and the status are the API server's business alone.
        let wrong_type = refusal.reason == "FieldValueTypeInvalid";
        let nameless = case.object["metadata"]["name"].is_null();
        if refusal.code == 400 || nameless || wrong_type || refusal.field.starts_with("status") {
            continue;
        }
        refused += 1;
        let errors = errors(&case);
        if !errors.iter().any(|error| is_this(refusal, error)) {
            wrong.push(format!("{}: {} expected, found {errors:?}", case.name, refusal.field));
        }
    }
    assert!(refused > 100, "only {refused} cases");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
