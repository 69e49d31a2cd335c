//! Unusual behaviour of the API server that the CRD of 5-Spot does not use, each observed on a real one, and
//! tests of the public functions.

use super::*;
use serde_json::json;

/// A validator for objects whose `spec` has the given schema.
fn validator(spec: Value) -> Validator {
    let mut version = json!({ "name": "v1", "served": true, "storage": true });
    version["schema"]["openAPIV3Schema"] = json!({ "type": "object", "properties": {} });
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec;
    let crd = json!({
        "metadata": { "name": "things.example.org" },
        "spec": {
            "group": "example.org",
            "names": { "kind": "Thing", "plural": "things" },
            "scope": "Namespaced",
            "versions": [version],
        },
    });
    Validator::for_crd(&serde_json::from_value(crd).unwrap(), "v1").unwrap()
}

fn thing(spec: &Value) -> Value {
    json!({ "apiVersion": "example.org/v1", "kind": "Thing", "metadata": { "name": "one" }, "spec": spec })
}

/// Causes as `field: message`.
#[track_caller]
fn check(schema: Value, spec: &Value, expected: &[&str]) {
    let causes = validator(schema).validate(&thing(spec), None);
    assert_eq!(causes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{spec}");
}

#[track_caller]
fn check_update(schema: Value, old: &Value, new: &Value, expected: &[&str]) {
    let causes = validator(schema).validate(&thing(new), Some(&thing(old)));
    assert_eq!(causes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{old} to {new}");
}

#[test]
fn types() {
    check(
        json!({ "type": "string" }),
        &json!(5),
        &[r#"spec: Invalid value: "integer": spec in body must be of type string: "integer""#],
    );
    check(json!({ "type": "integer" }), &json!(5.0), &[]);
    check(json!({ "type": "number" }), &json!(5), &[]);
    check(json!({ "type": "string", "nullable": true }), &json!(null), &[]);
    check(
        json!({ "type": "string" }),
        &json!(null),
        &[r#"spec: Invalid value: "null": spec in body must be of type string: "null""#],
    );
    check(json!({ "x-kubernetes-int-or-string": true }), &json!("50%"), &[]);
    check(json!({ "x-kubernetes-int-or-string": true }), &json!(50), &[]);
    check(
        json!({ "x-kubernetes-int-or-string": true }),
        &json!(true),
        &[r#"spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean""#],
    );
}

#[test]
fn a_number_that_is_no_integer_is_reported_twice() {
    check(
        json!({ "type": "integer", "format": "int32" }),
        &json!(1.5),
        &[
            r#"spec: Invalid value: "float64": spec in body must be of type int32: "float64""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec"#,
        ],
    );
}

#[test]
fn bounds_of_numbers() {
    let schema = || json!({ "type": "integer", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 5 });
    check(schema(), &json!(5), &[]);
    check(schema(), &json!(0), &["spec: Invalid value: 0: spec in body should be greater than 0"]);
    check(schema(), &json!(7), &["spec: Invalid value: 7: spec in body should be a multiple of 5"]);
}

#[test]
fn lengths_are_counted_in_characters() {
    check(json!({ "type": "string", "maxLength": 2 }), &json!("üü"), &[]);
    check(
        json!({ "type": "string", "maxLength": 1 }),
        &json!("üü"),
        &["spec: Too long: may not be more than 1 byte"],
    );
}

#[test]
fn patterns_and_formats() {
    check(
        json!({ "type": "string", "pattern": "^a+$" }),
        &json!("b\""),
        &[r#"spec: Invalid value: "b\"": spec in body should match '^a+$'"#],
    );
    check(
        json!({ "type": "string", "format": "date-time" }),
        &json!("today"),
        &[r#"spec: Invalid value: "today": spec in body must be of type date-time: "today""#],
    );
    check(json!({ "type": "string", "format": "no such format" }), &json!("today"), &[]);
}

#[test]
fn one_of_several_schemas() {
    let schema = || {
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] })
    };
    check(schema(), &json!({ "a": "x" }), &[]);
    check(
        schema(),
        &json!({ "a": "x", "b": "x" }),
        &[
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        json!({ "type": "string", "not": { "enum": ["x"] } }),
        &json!("x"),
        &[r#"<nil>: Invalid value: "": "spec" must not validate the schema (not)"#],
    );
}

#[test]
fn items_that_must_differ() {
    let set = json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" });
    // The third of three equal items is not reported.
    check(set, &json!(["a", "a", "a"]), &[r#"spec[1]: Duplicate value: "a""#]);
    let map = json!({
        "type": "array",
        "items": { "type": "object", "properties": { "key": { "type": "string" } } },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
    });
    check(
        map,
        &json!([{ "key": "<a>" }, { "key": "<a>" }]),
        &[r#"spec[1]: Duplicate value: {"key":"\u003ca\u003e"}"#],
    );
}

#[test]
fn rules_wait_until_the_schema_is_content() {
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "properties": { "a": { "type": "string" }, "b": { "type": "integer", "maximum": 5 } },
        "x-kubernetes-validations": [{ "rule": "self.b > 10", "message": "b is small" }],
    });
    check(
        schema.clone(),
        &json!({ "b": 1 }),
        &[
            "spec.a: Required value",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ],
    );
    // A value out of range does not stop the rules.
    check(
        schema,
        &json!({ "a": "x", "b": 6 }),
        &[
            "spec.b: Invalid value: 6: spec.b in body should be less than or equal to 5",
            "spec: Invalid value: b is small",
        ],
    );
}

#[test]
fn a_failing_rule_gives_its_message() {
    let with = |rule: Value| json!({ "type": "object", "properties": { "a": { "type": "string" } }, "x-kubernetes-validations": [rule] });
    let spec = json!({ "a": "x" });
    check(
        with(json!({ "rule": "self.a == 'y'" })),
        &spec,
        &["spec: Invalid value: failed rule: self.a == 'y'"],
    );
    check(
        with(json!({ "rule": "self.a == 'y'", "messageExpression": "'not ' + self.a", "message": "unused" })),
        &spec,
        &["spec: Invalid value: not x"],
    );
    check(
        with(
            json!({ "rule": "self.a == 'y'", "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".a" }),
        ),
        &spec,
        &["spec.a: Forbidden: no"],
    );
    check(
        with(json!({ "rule": "self.b == 'y'", "message": "b is y" })),
        &spec,
        &[r#"spec: Invalid value: "object": no such key: b evaluating rule: b is y"#],
    );
}

#[test]
fn names_that_the_language_cannot_say_are_written_otherwise() {
    check(
        json!({
            "type": "object",
            "properties": { "a-b": { "type": "string" }, "namespace": { "type": "string" } },
            "x-kubernetes-validations": [{ "rule": "self.a__dash__b == self.__namespace__" }],
        }),
        &json!({ "a-b": "x", "namespace": "x" }),
        &[],
    );
}

#[test]
fn functions_in_which_the_library_differs() {
    let text = |rule: &str| json!({ "type": "string", "x-kubernetes-validations": [{ "rule": rule, "message": "no" }] });
    check(text("size(self) == 2"), &json!("üü"), &[]);
    check(text("timestamp('2026-07-01T12:00:00Z').getHours(self) == 14"), &json!("Europe/Berlin"), &[]);
    check(text("duration(self).getHours() == 2"), &json!("2h"), &[]);
    check(
        text("duration(self).getHours() == 2"),
        &json!("x"),
        &[
            r#"spec: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: no"#,
        ],
    );
    check(
        text("timestamp('2026-07-01T12:00:00Z').getHours(self) == 14"),
        &json!("europe/berlin"),
        &[r#"spec: Invalid value: "string": unknown time zone europe/berlin evaluating rule: no"#],
    );
}

#[test]
fn rules_on_changes() {
    let fixed = || json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "is fixed" }] });
    check(fixed(), &json!("a"), &[]);
    check_update(fixed(), &json!("a"), &json!("a"), &[]);
    check_update(fixed(), &json!("a"), &json!("b"), &[r#"spec: Invalid value: "b": is fixed"#]);
    let grows = || {
        json!({ "type": "integer", "x-kubernetes-validations": [{
            "rule": "!oldSelf.hasValue() || oldSelf.value() <= self", "message": "must not shrink", "optionalOldSelf": true,
        }] })
    };
    check(grows(), &json!(1), &[]);
    check_update(grows(), &json!(2), &json!(1), &["spec: Invalid value: 1: must not shrink"]);
}

#[test]
fn unchanged_old_errors_are_not_reported() {
    let schema = || {
        json!({
            "type": "object",
            "properties": {
                "word": { "type": "string", "maxLength": 1 },
                "even": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self % 2 == 0", "message": "is odd" }] },
                "list": { "type": "array", "items": { "type": "string", "maxLength": 1 } },
            },
        })
    };
    let old = json!({ "word": "long", "even": 1, "list": ["long"] });
    check_update(schema(), &old, &json!({ "word": "long", "even": 1, "list": ["long"] }), &[]);
    check_update(schema(), &old, &json!({ "word": "x", "even": 1, "list": ["long"] }), &[]);
    check_update(
        schema(),
        &old,
        &json!({ "word": "long", "even": 3, "list": ["long"] }),
        &["spec.even: Invalid value: 3: is odd"],
    );
    // The items of a plain list have no identity, so the list is one value.
    let causes = validator(schema()).validate(&thing(&json!({ "list": ["long", "x"] })), Some(&thing(&old)));
    assert_eq!(causes[0].to_string(), "spec.list[0]: Too long: may not be more than 1 byte");
}

#[test]
fn unknown_fields_are_named_or_removed() {
    let validator = validator(json!({
        "type": "object",
        "properties": {
            "known": { "type": "object", "properties": { "a": { "type": "string" } } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } },
        },
    }));
    let mut object = thing(&json!({
        "known": { "a": "x", "b": "x" }, "free": { "x": { "y": 1 } }, "map": { "k": "v" }, "list": [{ "a": "x", "z": 1 }], "other": {},
    }));
    let unknown = ["spec.known.b", "spec.list[0].z", "spec.other"];
    assert_eq!(validator.unknown_fields(&object), unknown);
    assert_eq!(validator.prune(&mut object), unknown);
    let left = json!({ "known": { "a": "x" }, "free": { "x": { "y": 1 } }, "map": { "k": "v" }, "list": [{ "a": "x" }] });
    assert_eq!(object, thing(&left));
}

#[test]
fn defaults_complete_defaults() {
    let validator = validator(json!({
        "type": "object",
        "properties": {
            "outer": { "type": "object", "default": {}, "properties": {
                "inner": { "type": "integer", "default": 7 }, "nothing": { "type": "string" } } },
            "kept": { "type": "string", "nullable": true, "default": "x" },
            "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer", "default": 1 } } } },
        },
    }));
    let mut object = thing(&json!({ "kept": null, "list": [{}, { "n": 2 }] }));
    validator.apply_defaults(&mut object);
    assert_eq!(
        object["spec"],
        json!({ "outer": { "inner": 7 }, "kept": null, "list": [{ "n": 1 }, { "n": 2 }] })
    );
    let mut object = thing(&json!({ "outer": { "inner": null, "nothing": null } }));
    validator.apply_defaults(&mut object);
    assert_eq!(object["spec"], json!({ "outer": { "inner": 7 }, "kept": "x" }));
}

#[test]
fn an_unusable_crd_gives_an_error() {
    let crd = five_spot_api::crd();
    let error = |version: &str| Validator::for_crd(&crd, version).unwrap_err().to_string();
    assert_eq!(error("v7"), "the CRD has no version v7");
    let mut broken = crd.clone();
    let schema = broken.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.x_kubernetes_validations.as_mut().unwrap()[0].rule = "self ==".to_owned();
    let error = Validator::for_crd(&broken, "v1alpha1").unwrap_err();
    assert_eq!(error.to_string(), "failed to compile the rule self ==");
}
