//! A gzip-compressed tar archive. The same files at the same time give the same bytes.

use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use std::io::{self, Write};

/// The size of a header, and what everything is padded to.
const BLOCK: usize = 512;

/// The lengths of the two fields of a path in the format ustar.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// Writes files in the given order.
pub fn write<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    modified: Timestamp,
    out: impl Write,
) -> io::Result<()> {
    let mut gzip = GzBuilder::new().write(out, Compression::default());
    for (path, content) in files {
        gzip.write_all(&header(path, content.len(), modified)?)?;
        gzip.write_all(content)?;
        gzip.write_all(&vec![0; content.len().next_multiple_of(BLOCK) - content.len()])?;
    }
    gzip.write_all(&[0; 2 * BLOCK])?;
    gzip.finish()?.flush()
}

fn header(path: &str, size: usize, modified: Timestamp) -> io::Result<[u8; BLOCK]> {
    let (prefix, name) =
        split(path).ok_or_else(|| io::Error::other(format!("the path {path} is too long")))?;
    let mut header = [0_u8; BLOCK];
    let mut put =
        |offset: usize, text: &str| header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    // For the owner only: there is no reason to widen that when it is unpacked.
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{:011o}", modified.as_second().max(0)));
    // The checksum is computed as if it were spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    put(345, prefix);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// The two fields of a path, split at a slash.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    let slashes = path.match_indices('/').map(|(index, _)| index);
    slashes
        .map(|at| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= PREFIX && name.len() <= NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let modified = "2026-11-17T12:00:00Z".parse().expect("a time");
        write(files.iter().map(|(path, text)| (*path, text.as_bytes())), modified, &mut bytes)
            .expect("written");
        bytes
    }

    #[test]
    fn tar_unpacks_it_with_long_paths() {
        let long = format!("bundle/{}/{}.yaml", "n".repeat(63), "m".repeat(90));
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(
            directory.path().join("x.tar.gz"),
            archive(&[("bundle/a.txt", "a\n"), (&long, "b\n")]),
        )
        .expect("write");
        let tar = std::process::Command::new("tar")
            .args(["-xzf", "x.tar.gz"])
            .current_dir(directory.path())
            .output();
        let tar = tar.expect("tar");
        assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
        assert_eq!(std::fs::read_to_string(directory.path().join(&long)).expect("a file"), "b\n");
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let files = [("a", "1"), ("b", "2")];
        assert_eq!(archive(&files), archive(&files));
    }

    #[test]
    fn a_path_that_fits_no_header_is_refused() {
        assert!(split(&"a".repeat(101)).is_none());
        assert!(split(&format!("{}/b", "a".repeat(156))).is_none());
        assert_eq!(split("a/b"), Some(("", "a/b")));
    }
}
