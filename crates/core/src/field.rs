//! What is wrong with a field, and where.

use std::fmt;

/// One thing that is wrong with an object: the field, as a path from its root, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The path, such as `spec.schedule.daysOfWeek[0]`.
    pub field: String,
    /// What was found and what is allowed, in a sentence.
    pub message: String,
}

impl FieldError {
    /// Something is wrong at `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}
