//! What is wrong with a field, and where.

use five_spot_api::rules::Rule;
use std::fmt;

/// As much of a bad value as a message repeats.
const SHOWN_CHARACTERS: usize = 64;

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

    /// What was found at `field` is not what a rule of the CRD allows.
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

/// A value in quotes, cut where it becomes too long to read.
struct Found<'a>(&'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARACTERS) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}...", &self.0[..end]),
        }
    }
}
