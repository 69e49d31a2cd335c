//! Errors in the fields of an object.

use five_spot_api::rules::Rule;
use std::fmt;

/// The number of characters of a bad value that a message shows.
const SHOWN_CHARACTERS: usize = 64;

/// An error in a field of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The path, such as `spec.schedule.daysOfWeek[0]`.
    pub field: String,
    /// A message that says what was found and what is allowed.
    pub message: String,
}

impl FieldError {
    /// Returns an error in `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// Returns the error for a value that violates a rule of the CRD.
    pub(crate) fn refused(field: &str, found: &str, rule: &Rule) -> Self {
        Self::new(field, format!("found {}; {}", Found(found), rule.message))
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// A value in quotes, truncated if it is long.
struct Found<'a>(&'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARACTERS) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
        }
    }
}
