//! Locations in what was read, in the words of every message.

use crate::manifest::source::Source;
use std::fmt;

/// A document of a source, or an item of a `List` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub source: Source,
    /// Counted from 1.
    pub document: usize,
    /// The way from the document to the object through nested lists: `.items[2]`, mostly empty.
    pub path: String,
    /// `metadata.name`, where it has one.
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
