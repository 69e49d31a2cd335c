//! Problems of the input, with everything needed to fix them.

use crate::manifest::location::Location;
use crate::manifest::source::Source;
use five_spot_core::FieldError;
use std::fmt;
use std::io;

/// One reason not to go on.
#[derive(Debug)]
pub enum Problem {
    /// The operating system did not hand out the file.
    Unreadable(Source, io::Error),
    /// The file as a whole is no manifest.
    BadSource(Source, String),
    /// A document or object as a whole is nothing that can be understood.
    BadDocument(Location, String),
    /// A field of an object.
    BadField(Location, FieldError),
}

impl Problem {
    /// Returns true if the person has to change what is written, rather than where or by whom it is read.
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
