//! The search in command lines, which may be of any length: they are read in chunks, and memory stays bounded.

use super::ProcessFacts;
use std::ops::ControlFlow;

/// The arguments in which the file name of a program can stand: the kernel puts the interpreter of a script, and at most one
/// argument for it, in front of the path of the script.
const LEADING_ARGUMENTS: usize = 3;

/// The longest of them that is looked at; file names have at most 255 bytes, paths at most 4096.
const MAX_ARGUMENT_BYTES: usize = 4096;

/// All of them, each with the NUL after it.
const MAX_LEADING_BYTES: usize = LEADING_ARGUMENTS * (MAX_ARGUMENT_BYTES + 1);

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

/// The file names in the first arguments of `process`, in their order, up to one that is too long. That of an argument which
/// names no file is empty.
pub fn leading_basenames(process: &mut impl ProcessFacts) -> Vec<Vec<u8>> {
    let (mut content, mut ends) = (Vec::new(), 0);
    let visited = process.visit_command_line(0, &mut |chunk| {
        let room = MAX_LEADING_BYTES - content.len();
        content.extend_from_slice(&chunk[..chunk.len().min(room)]);
        ends += chunk.split(|byte| *byte == 0).count() - 1;
        if ends >= LEADING_ARGUMENTS || content.len() == MAX_LEADING_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if visited.is_none() {
        return Vec::new();
    }
    let arguments = content.split(|byte| *byte == 0).take(LEADING_ARGUMENTS);
    arguments.take_while(|argument| argument.len() <= MAX_ARGUMENT_BYTES).map(basename).collect()
}

fn basename(path: &[u8]) -> Vec<u8> {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec()
}
