//! Problems with the input, with everything needed to fix them.

use crate::manifest::location::Location;
use crate::manifest::source::Source;
use five_spot_core::FieldError;
use std::fmt;
use std::io;

/// A problem that stops the command.
#[derive(Debug)]
pub enum Problem {
    /// The operating system could not read the file.
    Unreadable(Source, io::Error),
    /// The file is not a manifest.
    BadSource(Source, String),
    /// A document or an object is malformed.
    BadDocument(Location, String),
    /// A field of an object is invalid.
    BadField(Location, FieldError),
}

impl Problem {
    /// Returns true if the user must change the content, rather than the path or its permissions.
    pub const fn is_in_the_input(&self) -> bool {
        match self {
            Self::Unreadable(..) => false,
            Self::BadSource(..) | Self::BadDocument(..) | Self::BadField(..) => true,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(source, error) => write!(f, "failed to read {source}: {error}"),
            Self::BadSource(source, message) => write!(f, "{source}: {message}"),
            Self::BadDocument(location, message) => write!(f, "{location}: {message}"),
            Self::BadField(location, error) => write!(f, "{location}: {error}"),
        }
    }
}
