//! Types, bounds, enumerations and required fields.
//!
//! Messages, the order of the checks and special cases are those of the API server: a check depends on the
//! type of the value, not on the type in the schema, so that one wrong value can have several causes.

use super::cause::StatusCause;
use super::formats;
use super::lists::identity;
use super::path::Path;
use super::structural::{Limit, ListKind, Schema};
use serde_json::{Map, Number, Value};

/// Reports all violations of `schema` in `value`. Violations that are unchanged from `old` are not reported,
/// so that a stricter schema does not block unrelated changes.
pub(super) fn check(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &Path<'_>,
    causes: &mut Vec<StatusCause>,
) {
    if old == Some(value) {
        return;
    }
    check_type(value, schema, path, causes);
    if value.is_null() {
        check_allowed(value, schema, path, causes);
        return;
    }
    check_combinations(value, schema, path, causes);
    match value {
        Value::String(text) => check_string(text, schema, path, causes),
        Value::Number(number) => check_number(number, schema, path, causes),
        Value::Array(values) => check_list(values, old, schema, path, causes),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    check_allowed(value, schema, path, causes);
    if let Value::Object(fields) = value {
        check_fields(fields, old, schema, path, causes);
    }
}

/// The type of the value and its format, as the API server names them.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(value: &Value, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    if schema.types.is_empty() || (value.is_null() && schema.nullable) {
        return;
    }
    let (found, found_format) = type_of(value);
    let wants = |name: &str| schema.types.contains(&name);
    let fits = wants(found)
        || (found == "integer" && wants("number"))
        || (wants("integer") && value.as_f64().is_some_and(is_whole));
    if fits {
        return;
    }
    let mut complain = |wanted: &str, found: &str| {
        let path = path.dotted();
        let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
        causes.push(StatusCause::type_invalid(path, found, &detail));
    };
    match &schema.format {
        Some(_)
            if matches!(value, Value::Array(_) | Value::String(_))
                && !wants("number")
                && !wants("integer") => {}
        Some(format) if !matches!(value, Value::Null | Value::Array(_) | Value::String(_)) => {
            complain(format, found_format);
        }
        Some(_) | None => complain(&schema.types.join(","), found),
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

fn check_allowed(value: &Value, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    if !schema.allowed.is_empty() && !schema.allowed.contains(value) {
        causes.push(StatusCause::not_supported(path.dotted(), value, &schema.allowed));
    }
}

fn check_string(text: &str, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    let bounds = &schema.bounds;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let invalid = |what: &str| {
        let path = path.dotted();
        let detail = format!("{path} in body should {what}");
        StatusCause::invalid(path, &text.into(), &detail)
    };
    if let Some(max) = bounds.max_length
        && length > max
    {
        causes.push(StatusCause::too_long(path.dotted(), max));
    } else if let Some(min) = bounds.min_length
        && length < min
    {
        causes.push(invalid(&format!("be at least {min} chars long")));
    } else if let Some(pattern) = &bounds.pattern
        && !pattern.is_match(text)
    {
        causes.push(invalid(&format!("match '{pattern}'")));
    }
    if let Some(format) = &schema.format
        && formats::is_known(format)
        && !formats::matches(format, text)
    {
        let path = path.dotted();
        let detail = format!("{path} in body must be of type {format}: {}", super::cause::quoted(text));
        causes.push(StatusCause::type_invalid(path, text, &detail));
    }
}

fn check_number(number: &Number, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    let Some(value) = number.as_f64() else { return };
    if let Some(format) = out_of_range(number, schema) {
        // The API server omits the path of this error.
        let detail = format!("Checked value must be of type integer{format} in {}", path.dotted());
        causes.push(StatusCause::invalid(String::new(), &"".into(), &detail));
    }
    let mut complain = |what: &str| {
        let path = path.dotted();
        let detail = format!("{path} in body should be {what}");
        causes.push(StatusCause::invalid(path, &Value::Number(number.clone()), &detail));
    };
    if let Some(factor) = schema.bounds.multiple_of
        && !is_whole(value / factor)
    {
        complain(&format!("a multiple of {factor}"));
    }
    if let Some(Limit { value: limit, exclusive }) = schema.bounds.minimum
        && (value < limit || (exclusive && value <= limit))
    {
        complain(&format!("greater than {}{limit}", if exclusive { "" } else { "or equal to " }));
    }
    if let Some(Limit { value: limit, exclusive }) = schema.bounds.maximum
        && (value > limit || (exclusive && value >= limit))
    {
        complain(&format!("less than {}{limit}", if exclusive { "" } else { "or equal to " }));
    }
}

/// The name of the expected integer type in the message if the number is out of range.
fn out_of_range(number: &Number, schema: &Schema) -> Option<String> {
    if schema.types != ["integer"] {
        return None;
    }
    let whole = number.as_i64();
    let fits = match schema.format.as_deref() {
        Some("int32") => whole.is_some_and(|whole| i32::try_from(whole).is_ok()),
        Some(_) | None => whole.is_some(),
    };
    // 5.0 is also an integer.
    let fits =
        fits || number.as_f64().is_some_and(|float| is_whole(float) && float.abs() <= f64::from(i32::MAX));
    if fits {
        return None;
    }
    Some(match &schema.format {
        Some(format) => format!(" with format {format}"),
        None => " (default format)".to_owned(),
    })
}

fn check_list(
    values: &[Value],
    old: Option<&Value>,
    schema: &Schema,
    path: &Path<'_>,
    causes: &mut Vec<StatusCause>,
) {
    if let Some(items) = &schema.items {
        for (index, value) in values.iter().enumerate() {
            check(value, old_item(value, old, &schema.list), items, &path.index(index), causes);
        }
    }
    let bounds = &schema.bounds;
    let length = i64::try_from(values.len()).unwrap_or(i64::MAX);
    let invalid = |value: Value, what: &str| {
        let path = path.dotted();
        let detail = format!("{path} in body {what}");
        StatusCause::invalid(path, &value, &detail)
    };
    if let Some(min) = bounds.min_items
        && length < min
    {
        causes.push(invalid(length.into(), &format!("should have at least {min} items")));
    }
    if let Some(max) = bounds.max_items
        && length > max
    {
        causes.push(StatusCause::too_many(path.dotted(), values.len(), max));
    }
    if bounds.unique_items && (1..values.len()).any(|index| values[..index].contains(&values[index])) {
        causes.push(invalid("".into(), "shouldn't contain duplicates"));
    }
}

/// The same item before the change. Only lists with item identity have one.
pub(super) fn old_item<'a>(item: &Value, old: Option<&'a Value>, list: &ListKind) -> Option<&'a Value> {
    match list {
        ListKind::Atomic | ListKind::Set => None,
        ListKind::Map(keys) => {
            let wanted = identity(item, keys);
            old?.as_array()?.iter().find(|old| identity(old, keys) == wanted)
        }
    }
}

fn check_fields(
    fields: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    path: &Path<'_>,
    causes: &mut Vec<StatusCause>,
) {
    let bounds = &schema.bounds;
    let length = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(min) = bounds.min_properties
        && length < min
    {
        let path = path.dotted();
        let detail = format!("{path} in body should have at least {min} properties");
        causes.push(StatusCause::invalid(path, &length.into(), &detail));
    }
    if let Some(max) = bounds.max_properties
        && length > max
    {
        causes.push(StatusCause::too_many(path.dotted(), fields.len(), max));
    }
    for (name, value) in fields {
        let old = old.and_then(|old| old.get(name));
        if let Some(property) = schema.properties.get(name) {
            check(value, old, property, &path.field(name), causes);
        } else if let Some(entries) = &schema.entries {
            check(value, old, entries, &path.key(name), causes);
        }
    }
    for name in &schema.required {
        if !fields.contains_key(name) {
            causes.push(StatusCause::required(path.field(name).dotted(), ""));
        }
    }
}

/// `allOf`, `anyOf`, `oneOf` and `not`. The errors of a branch are reported in addition to that of the whole.
fn check_combinations(value: &Value, schema: &Schema, path: &Path<'_>, causes: &mut Vec<StatusCause>) {
    let faults = |branch: &Schema| {
        let mut causes = Vec::new();
        check(value, None, branch, path, &mut causes);
        causes
    };
    let mut complain = |what: &str, mut details: Vec<StatusCause>| {
        let detail = format!("{} {what}", super::cause::quoted(&path.dotted()));
        causes.push(StatusCause::invalid(String::new(), &"".into(), &detail));
        causes.append(&mut details);
    };
    let fewest = |faults: Vec<Vec<StatusCause>>| faults.into_iter().min_by_key(Vec::len).unwrap_or_default();

    if !schema.any_of.is_empty() {
        let all: Vec<_> = schema.any_of.iter().map(faults).collect();
        if all.iter().all(|faults| !faults.is_empty()) {
            complain("must validate at least one schema (anyOf)", fewest(all));
        }
    }
    if !schema.one_of.is_empty() {
        let all: Vec<_> = schema.one_of.iter().map(faults).collect();
        match all.iter().filter(|faults| faults.is_empty()).count() {
            0 => complain("must validate one and only one schema (oneOf). Found none valid", fewest(all)),
            1 => {}
            n => {
                let what =
                    format!("must validate one and only one schema (oneOf). Found {n} valid alternatives");
                complain(&what, Vec::new());
            }
        }
    }
    if !schema.all_of.is_empty() {
        let all: Vec<_> = schema.all_of.iter().map(faults).collect();
        match all.iter().filter(|faults| faults.is_empty()).count() {
            0 => complain("must validate all the schemas (allOf). None validated", all.concat()),
            n if n < all.len() => complain("must validate all the schemas (allOf)", all.concat()),
            _ => {}
        }
    }
    if let Some(not) = &schema.not
        && faults(not).is_empty()
    {
        complain("must not validate the schema (not)", Vec::new());
    }
}
