//! The validation errors of the API server.

use serde::Serialize;
use serde_json::Value;
use std::fmt::{self, Write as _};

/// The field path that the API server uses for errors without one.
const NOWHERE: &str = "<nil>";

/// An entry of `details.causes` in the response to a refused write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StatusCause {
    /// The path of the field, such as `spec.schedule.daysOfWeek[0]`.
    pub field: String,
    /// The type of the error.
    pub reason: CauseReason,
    /// The message, with the actual and the allowed values.
    pub message: String,
}

/// The type of an error, as the API server names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum CauseReason {
    /// Two entries that must be unique are equal.
    FieldValueDuplicate,
    /// The field must not be set.
    FieldValueForbidden,
    /// The value is malformed or out of range.
    FieldValueInvalid,
    /// The value is not one of the allowed ones.
    FieldValueNotSupported,
    /// The field is missing.
    FieldValueRequired,
    /// The string is too long.
    FieldValueTooLong,
    /// The list or map has too many entries.
    FieldValueTooMany,
    /// The value has the wrong type.
    FieldValueTypeInvalid,
}

impl CauseReason {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FieldValueDuplicate => "FieldValueDuplicate",
            Self::FieldValueForbidden => "FieldValueForbidden",
            Self::FieldValueInvalid => "FieldValueInvalid",
            Self::FieldValueNotSupported => "FieldValueNotSupported",
            Self::FieldValueRequired => "FieldValueRequired",
            Self::FieldValueTooLong => "FieldValueTooLong",
            Self::FieldValueTooMany => "FieldValueTooMany",
            Self::FieldValueTypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The start of a message of this type.
    const fn title(self) -> &'static str {
        match self {
            Self::FieldValueDuplicate => "Duplicate value",
            Self::FieldValueForbidden => "Forbidden",
            Self::FieldValueInvalid | Self::FieldValueTypeInvalid => "Invalid value",
            Self::FieldValueNotSupported => "Unsupported value",
            Self::FieldValueRequired => "Required value",
            Self::FieldValueTooLong => "Too long",
            Self::FieldValueTooMany => "Too many",
        }
    }

    /// Returns true if the rules are not evaluated for an object with such an error: they could fail on it,
    /// or exceed their estimated cost.
    pub(super) const fn stops_rules(self) -> bool {
        match self {
            Self::FieldValueNotSupported
            | Self::FieldValueRequired
            | Self::FieldValueTooLong
            | Self::FieldValueTooMany
            | Self::FieldValueTypeInvalid => true,
            Self::FieldValueDuplicate | Self::FieldValueForbidden | Self::FieldValueInvalid => false,
        }
    }
}

impl fmt::Display for StatusCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl StatusCause {
    fn new(field: String, reason: CauseReason, value: Option<&str>, detail: &str) -> Self {
        let field = if field.is_empty() { NOWHERE.to_owned() } else { field };
        let parts = [Some(reason.title()), value, Some(detail).filter(|detail| !detail.is_empty())];
        Self { field, reason, message: parts.into_iter().flatten().collect::<Vec<_>>().join(": ") }
    }

    pub(super) fn duplicate(field: String, value: &Value) -> Self {
        Self::new(field, CauseReason::FieldValueDuplicate, Some(&shown(value)), "")
    }

    pub(super) fn forbidden(field: String, detail: &str) -> Self {
        Self::new(field, CauseReason::FieldValueForbidden, None, detail)
    }

    pub(super) fn invalid(field: String, value: &Value, detail: &str) -> Self {
        Self::new(field, CauseReason::FieldValueInvalid, Some(&shown(value)), detail)
    }

    /// Objects and lists that a rule refuses are not part of the message.
    pub(super) fn invalid_compound(field: String, detail: &str) -> Self {
        Self::new(field, CauseReason::FieldValueInvalid, None, detail)
    }

    pub(super) fn not_supported(field: String, value: &Value, supported: &[Value]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| quoted(&plain(value))).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(field, CauseReason::FieldValueNotSupported, Some(&shown(value)), &detail)
    }

    pub(super) fn required(field: String, detail: &str) -> Self {
        Self::new(field, CauseReason::FieldValueRequired, None, detail)
    }

    pub(super) fn too_long(field: String, max: i64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        Self::new(field, CauseReason::FieldValueTooLong, None, &detail)
    }

    pub(super) fn too_many(field: String, actual: usize, max: i64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        Self::new(field, CauseReason::FieldValueTooMany, Some(&actual.to_string()), &detail)
    }

    pub(super) fn type_invalid(field: String, found: &str, detail: &str) -> Self {
        Self::new(field, CauseReason::FieldValueTypeInvalid, Some(&quoted(found)), detail)
    }

    pub(super) fn rules_not_checked() -> Self {
        Self::invalid(
            String::new(),
            &Value::Null,
            "some validation rules were not checked because the object was invalid; correct the existing errors \
             to complete validation",
        )
    }
}

/// A value in the format of messages.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) => value.to_string(),
        // A whole number has no fraction.
        Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
        // Go escapes JSON for use in HTML.
        Value::Array(_) | Value::Object(_) => {
            value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// A string in Go's quoting.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
