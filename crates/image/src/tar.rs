//! The tar format as far as image layers need it: regular files, directories and symbolic links, all of them root's and of
//! no particular time, so that the same files always give the same bytes. They are the bytes that buildah and docker write
//! for these files with `--timestamp 0`: directories end with a slash, modes include the type, and devices are numbers.

/// The size of a header, and what everything is padded to.
const BLOCK: usize = 512;

/// The kind of an entry.
#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Link,
    Directory,
}

impl Kind {
    /// The type flag of the header.
    fn flag(self) -> &'static str {
        match self {
            Self::File => "0",
            Self::Link => "2",
            Self::Directory => "5",
        }
    }

    /// The type in the mode, as in `st_mode`.
    fn mode(self) -> u32 {
        match self {
            Self::File => 0o100_000,
            Self::Link => 0o120_000,
            Self::Directory => 0o040_000,
        }
    }
}

/// An archive that grows in memory.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
}

impl Archive {
    /// Adds a regular file. Paths have at most 100 bytes and no leading slash.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.header(Kind::File, path, mode, content.len(), "");
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.header(Kind::Link, path, 0o777, 0, target);
    }

    /// Adds a directory. Its path has no slash at the end.
    pub(crate) fn directory(&mut self, path: &str, mode: u32) {
        self.header(Kind::Directory, &format!("{path}/"), mode, 0, "");
    }

    /// The bytes of the whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }

    fn header(&mut self, kind: Kind, path: &str, mode: u32, size: usize, target: &str) {
        assert!(path.len() <= 100 && target.len() <= 100, "{path} or {target} is too long for this format");
        let mut header = [0_u8; BLOCK];
        let mut put = |offset: usize, text: &str| {
            header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, path);
        put(100, &format!("{:07o}", mode | kind.mode()));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{size:011o}"));
        put(136, "00000000000");
        // The checksum is computed as if it were spaces.
        put(148, "        ");
        put(156, kind.flag());
        put(157, target);
        put(257, "ustar");
        put(263, "00");
        // The numbers of a device, which the format has for all types.
        put(329, "0000000");
        put(337, "0000000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnu_tar_reads_it() {
        let mut archive = Archive::default();
        archive.directory("bin", 0o755);
        archive.file("bin/hello", 0o755, b"#!/bin/sh\necho hello\n");
        archive.link("bin/hi", "hello");
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("x.tar"), archive.finish()).expect("write");
        let tar = std::process::Command::new("tar")
            .args(["-xf", "x.tar"])
            .current_dir(dir.path())
            .output()
            .expect("tar");
        assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
        let said = std::process::Command::new(dir.path().join("bin/hi")).output().expect("it runs");
        assert_eq!(said.stdout, b"hello\n");
    }
}
