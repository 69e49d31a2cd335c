//! The search in command lines, which may be of any length: they are read in chunks, and memory stays bounded.

use super::ProcessFacts;
use std::ops::ControlFlow;

/// The longest first argument that is looked at; file names have at most 255 bytes, paths at most 4096.
const MAX_FIRST_ARGUMENT_BYTES: usize = 4096;

/// Substrings to look for in command lines.
#[derive(Clone, Debug, Default)]
pub struct SubstringSearch {
    substrings: Vec<String>,
    /// One byte less than the longest substring: with so much of the last chunk none is missed between two chunks.
    overlap: usize,
}

impl SubstringSearch {
    /// Prepares a search for `substrings`.
    pub fn new(substrings: Vec<String>) -> Self {
        let overlap = substrings.iter().map(String::len).max().unwrap_or_default().saturating_sub(1);
        Self { substrings, overlap }
    }

    /// True if there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.substrings.is_empty()
    }

    /// The first substring that occurs in the command line of `process`.
    pub fn find_in(&self, process: &mut impl ProcessFacts) -> Option<&str> {
        if self.substrings.is_empty() {
            return None;
        }
        let mut found: Option<usize> = None;
        process.visit_command_line(self.overlap, &mut |chunk| {
            // An earlier chunk may hold a later substring of the list; the first that is seen is enough.
            found = self.substrings.iter().position(|substring| contains(chunk, substring.as_bytes()));
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        found.map(|index| self.substrings[index].as_str())
    }
}

/// True if `pattern` occurs in `chunk`, in which the NUL after an argument counts as a space.
fn contains(chunk: &[u8], pattern: &[u8]) -> bool {
    let shown = |byte: u8| if byte == 0 { b' ' } else { byte };
    let Some((first, rest)) = pattern.split_first() else { return true };
    chunk.windows(pattern.len()).any(|window| {
        shown(window[0]) == *first && window[1..].iter().zip(rest).all(|(byte, want)| shown(*byte) == *want)
    })
}

/// The file name in the first argument of `process`.
pub fn first_argument_basename(process: &mut impl ProcessFacts) -> Option<Vec<u8>> {
    let mut argument = Vec::new();
    process.visit_command_line(0, &mut |chunk| {
        let end = chunk.iter().position(|byte| *byte == 0);
        argument.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
        if end.is_some() || argument.len() > MAX_FIRST_ARGUMENT_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    if argument.len() > MAX_FIRST_ARGUMENT_BYTES {
        return None;
    }
    let start = argument.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    argument.drain(..start);
    (!argument.is_empty()).then_some(argument)
}
