//! The table of valid and invalid objects, against the offline validation. The same table runs against the
//! real API server: a different result is a bug in this crate.

#[path = "../../../tests/crd/table.rs"]
mod table;

use five_spot_schema::{StatusCause, Validator};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use serde_json::Value;
use std::collections::BTreeSet;
use table::{Case, Expected, Refusal};

/// Admits an object as the API server does on create: unknown fields, then defaults, then validation.
fn admit(validator: &Validator, object: &mut Value) -> Result<(), Vec<StatusCause>> {
    validator.apply_defaults(object);
    let causes = validator.validate(object, None);
    if causes.is_empty() { Ok(()) } else { Err(causes) }
}

/// The difference between the result of a case and the table, if any.
fn complaint(validator: &Validator, case: &Case) -> Option<String> {
    let unknown = validator.unknown_fields(&case.object);
    let mut object = case.object.clone();
    let answer = admit(validator, &mut object);
    match &case.expected {
        Expected::Accepted { .. } if !unknown.is_empty() => Some(format!("unknown fields {unknown:?}")),
        Expected::Accepted { becomes } => match answer {
            Err(causes) => Some(format!("refused: {causes:#?}")),
            Ok(()) => becomes.iter().find_map(|(pointer, wanted)| {
                let found = object.pointer(pointer).unwrap_or(&Value::Null);
                (found != wanted).then(|| format!("{pointer} is {found}, not {wanted}"))
            }),
        },
        Expected::Refused(Refusal { field, code: 400, .. }) => {
            (!unknown.contains(field)).then(|| format!("{field} is not among the unknown fields {unknown:?}"))
        }
        Expected::Refused(_) if !unknown.is_empty() => Some(format!("unknown fields {unknown:?}")),
        Expected::Refused(wanted) => match answer {
            Ok(()) => Some("accepted".to_owned()),
            Err(causes) => {
                let fits = |cause: &StatusCause| {
                    cause.field == wanted.field
                        && cause.reason.as_str() == wanted.reason
                        && cause.message.contains(&wanted.message)
                };
                (!causes.iter().any(fits)).then(|| format!("no cause is {wanted:#?}: {causes:#?}"))
            }
        },
    }
}

#[test]
fn every_case_is_answered_as_the_table_says() {
    let validator =
        Validator::for_crd(&five_spot_api::crd(), five_spot_api::names::VERSION).expect("a valid definition");
    let cases = table::cases();
    let complaints: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.name, complaint(&validator, case)?)))
        .collect();
    assert!(complaints.is_empty(), "{} of {}:\n{}", complaints.len(), cases.len(), complaints.join("\n"));
}

/// The CRD of the version before this one.
fn previous() -> CustomResourceDefinition {
    serde_saphyr::from_str(include_str!("../../../tests/crd/previous.yaml")).expect("previous.yaml is a CRD")
}

#[test]
fn objects_of_the_previous_crd_are_still_accepted() {
    let version = five_spot_api::names::VERSION;
    let before = Validator::for_crd(&previous(), version).expect("a valid definition");
    let now = Validator::for_crd(&five_spot_api::crd(), version).expect("a valid definition");
    let mut accepted = 0;
    for case in table::cases() {
        let mut object = case.object;
        if !before.unknown_fields(&object).is_empty() || admit(&before, &mut object).is_err() {
            continue;
        }
        accepted += 1;
        // As stored, with the defaults of that version.
        assert_eq!(now.unknown_fields(&object), Vec::<String>::new(), "{}", case.name);
        assert_eq!(admit(&now, &mut object), Ok(()), "{}", case.name);
    }
    assert!(accepted >= 50, "only {accepted} cases were accepted before");
}

#[test]
fn the_table_is_large_and_its_names_are_unique() {
    let cases = table::cases();
    assert!(cases.len() >= 250, "only {} cases", cases.len());
    let mut names = BTreeSet::new();
    for case in &cases {
        assert!(names.insert(&case.name), "two cases have the name {}", case.name);
    }
}

/// The paths of all fields below a schema, with `[0]` for the items of lists.
fn fields(schema: &JSONSchemaProps, path: &str, found: &mut BTreeSet<String>) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        fields(property, &path, found);
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &property.items {
            fields(items, &format!("{path}[0]"), found);
        }
        found.insert(path);
    }
}

#[test]
fn every_field_of_a_spec_has_bad_values_in_the_table() {
    let version = five_spot_api::crd().spec.versions.remove(0);
    let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
    let mut missing = BTreeSet::new();
    fields(&schema.properties.unwrap()["spec"], "spec", &mut missing);
    for case in table::cases() {
        if let Expected::Refused(Refusal { field, code: 422, .. }) = case.expected {
            missing.remove(&field);
        }
    }
    assert_eq!(missing, BTreeSet::new());
}
