//! Locations in the input, as messages show them.

use crate::manifest::source::Source;
use std::fmt;

/// A document of a source, or an item of a `List` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub source: Source,
    /// The number of the document, counted from 1.
    pub document: usize,
    /// The path from the document to the object through nested lists, such as `.items[2]`; usually empty.
    pub path: String,
    /// `metadata.name`, if present.
    pub name: Option<String>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}{}", self.source, self.document, self.path)?;
        match &self.name {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}
