//! The source of a manifest, and its text: read up to a size limit and checked to be text.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The size limit of a manifest. Larger files are not manifests, and must not fill the memory. The API server
/// accepts 3 MiB for one object.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// An argument of `-f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `-`.
    StandardInput,
    /// A file name.
    File(PathBuf),
}

impl From<&OsStr> for Source {
    fn from(word: &OsStr) -> Self {
        if word == "-" { Self::StandardInput } else { Self::File(PathBuf::from(word)) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("standard input"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The reason why a source has no usable text.
#[derive(Debug)]
pub enum Unreadable {
    /// The operating system reported an error.
    Io(io::Error),
    /// The content cannot be a manifest.
    NotText(String),
}

impl Source {
    /// Parses the arguments of `-f`.
    pub fn all(words: &[OsString]) -> Result<Vec<Self>, String> {
        let sources: Vec<Self> = words.iter().map(|word| Self::from(word.as_os_str())).collect();
        if sources.iter().filter(|source| **source == Self::StandardInput).count() > 1 {
            return Err("-f - is given more than once; standard input can be read only once".to_owned());
        }
        if words.iter().any(|word| word.is_empty()) {
            return Err("-f '' is not a file name; use -f - for standard input".to_owned());
        }
        Ok(sources)
    }

    /// Reads the whole text, without a byte order mark.
    pub fn read(&self) -> Result<String, Unreadable> {
        let bytes = match self {
            Self::StandardInput => read_bounded(io::stdin().lock()),
            Self::File(path) => open(path).and_then(read_bounded),
        };
        decode(bytes.map_err(Unreadable::Io)?).map_err(Unreadable::NotText)
    }
}

/// Reports directories early: on some systems, opening one succeeds and only reading fails, with an unhelpful
/// message.
fn open(path: &PathBuf) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory; name the files in it, each with its own -f",
        ));
    }
    Ok(file)
}

/// Reads at most one byte more than the limit, which is enough to know that the source is too large.
fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(mut bytes: Vec<u8>) -> Result<String, String> {
    const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
    const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} MiB, the size limit", MAX_BYTES / 1024 / 1024));
    }
    if UTF16_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        return Err("it is UTF-16; save it as UTF-8".to_owned());
    }
    if bytes.starts_with(UTF8_MARK) {
        bytes.drain(..UTF8_MARK.len());
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(not_text(&bytes[..at], "has a NUL"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let readable = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        not_text(readable, "is not UTF-8")
    })
}

fn not_text(readable: &[u8], what: &str) -> String {
    let line = readable.split(|byte| *byte == b'\n').count();
    format!("it is not text: line {line} {what}; expected YAML or JSON in UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(decode(b"\xef\xbb\xbfkind: X".to_vec()), Ok("kind: X".to_owned()));
    }

    #[test]
    fn invalid_utf8_is_refused_with_its_line() {
        for (bytes, message) in [
            (&b"\xff\xfek\0i\0"[..], "UTF-16"),
            (b"\xfe\xff\0k", "UTF-16"),
            (b"a: \0", "line 1 has a NUL"),
            (b"a: 1\nb: \xe9", "line 2 is not UTF-8"),
        ] {
            let refused = decode(bytes.to_vec()).expect_err("not text");
            assert!(refused.contains(message), "{refused}");
        }
    }

    #[test]
    fn an_endless_source_is_left_after_the_bound() {
        let bytes = read_bounded(io::repeat(b'#')).expect("reads");
        assert_eq!(bytes.len() as u64, MAX_BYTES + 1);
        assert!(decode(bytes).expect_err("too large").contains("16 MiB"));
    }
}
