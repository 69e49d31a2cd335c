//! Errors in the form of Kubernetes: a `metav1.Status`.

use http::StatusCode;
use serde_json::{Value, json};

/// The error of a request. Its fields become a `Status` object.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status code.
    pub code: StatusCode,
    /// The machine-readable reason, such as `NotFound`; empty if there is none.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// The `details` of the status; null if there are none.
    pub details: Value,
}

/// The subject of an error: the resource or kind of `details`, and its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
}

impl Subject<'_> {
    fn details(self) -> Value {
        let mut details = json!({});
        for (field, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details[field] = value.into();
            }
        }
        details
    }

    fn qualified(self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// One reason for which an object is invalid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub field: String,
    pub reason: &'static str,
    pub message: String,
}

impl From<five_spot_schema::StatusCause> for Fault {
    fn from(cause: five_spot_schema::StatusCause) -> Self {
        Self { field: cause.field, reason: cause.reason.as_str(), message: cause.message }
    }
}

impl Fault {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: impl AsRef<str>) -> Self {
        let message = format!("Invalid value: {value}: {}", why.as_ref());
        Self { field: field.into(), reason: "FieldValueInvalid", message }
    }

    pub(crate) fn required(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        let why = why.as_ref();
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { field: field.into(), reason: "FieldValueRequired", message }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {}", why.as_ref()),
        }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {value}"),
        }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list = supported.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {value}: supported values: {list}");
        Self { field: field.into(), reason: "FieldValueNotSupported", message }
    }

    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { field: field.into(), reason: "FieldValueTooLong", message }
    }
}

impl ApiError {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    pub(crate) fn not_found(subject: Subject<'_>) -> Self {
        Self {
            details: subject.details(),
            ..Self::new(
                StatusCode::NOT_FOUND,
                "NotFound",
                format!("{} {:?} not found", subject.qualified(), subject.name),
            )
        }
    }

    /// The 404 for a path without a handler.
    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self { details: json!({}), ..Self::new(StatusCode::NOT_FOUND, "NotFound", message) }
    }

    pub(crate) fn already_exists(subject: Subject<'_>) -> Self {
        Self {
            details: subject.details(),
            ..Self::new(
                StatusCode::CONFLICT,
                "AlreadyExists",
                format!("{} {:?} already exists", subject.qualified(), subject.name),
            )
        }
    }

    pub(crate) fn conflict(subject: Subject<'_>, why: impl AsRef<str>) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {}",
            subject.qualified(),
            subject.name,
            why.as_ref()
        );
        Self { details: subject.details(), ..Self::new(StatusCode::CONFLICT, "Conflict", message) }
    }

    /// The conflict of an update that is based on an older resource version.
    pub(crate) fn stale(subject: Subject<'_>) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(subject: Subject<'_>, why: impl AsRef<str>) -> Self {
        let message = format!("{} {:?} is forbidden: {}", subject.qualified(), subject.name, why.as_ref());
        Self { details: subject.details(), ..Self::new(StatusCode::FORBIDDEN, "Forbidden", message) }
    }

    /// The error for an invalid object. `subject.kind` is the kind here, not the resource.
    pub(crate) fn invalid(subject: Subject<'_>, faults: &[Fault]) -> Self {
        let texts: Vec<String> =
            faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
        let list =
            if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) };
        let mut details = subject.details();
        details["causes"] = faults
            .iter()
            .map(|fault| json!({"reason": fault.reason, "message": fault.message, "field": fault.field}))
            .collect();
        let message = format!("{} {:?} is invalid: {list}", subject.qualified(), subject.name);
        Self { details, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message) }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self { details: json!({}), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message) }
    }

    pub(crate) fn unsupported_media_type(supported: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            supported.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self { details: json!({}), ..Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message) }
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The error for a request that this server does not support. Its message cannot be confused with one of
    /// Kubernetes.
    pub(crate) fn not_implemented(what: impl AsRef<str>) -> Self {
        let message = format!("the 5-Spot sandbox does not implement {}", what.as_ref());
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    /// The `Status` object for the client.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
