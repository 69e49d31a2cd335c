//! The files of an image.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::tar::Archive;

/// The mode of directories that exist because something is in them.
const DIRECTORY_MODE: u32 = 0o755;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { target: String },
}

/// The root file system of an image. The entries are ordered by their paths, whatever order they were added in, and all of
/// them belong to root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootFileSystem {
    entries: BTreeMap<String, Entry>,
}

impl RootFileSystem {
    /// Adds a regular file and the directories above it. Paths have no leading slash.
    pub fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        self.add(path, Entry::File { mode, content: content.into() });
    }

    /// Adds a symbolic link and the directories above it.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(path, Entry::Link { target: target.to_owned() });
    }

    fn add(&mut self, path: &str, entry: Entry) {
        for (end, _) in path.match_indices('/') {
            let directory = Entry::Directory { mode: DIRECTORY_MODE };
            self.entries.entry(path[..end].to_owned()).or_insert(directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// The size of all files.
    pub fn size(&self) -> usize {
        let sizes = self.entries.values().map(|entry| match entry {
            Entry::File { content, .. } => content.len(),
            Entry::Directory { .. } | Entry::Link { .. } => 0,
        });
        sizes.sum()
    }

    /// The layer: a tar archive.
    pub(crate) fn layer(&self) -> Vec<u8> {
        let mut layer = Archive::default();
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory { mode } => layer.directory(path, *mode),
                Entry::File { mode, content } => layer.file(path, *mode, content),
                Entry::Link { target } => layer.link(path, target),
            }
        }
        layer.finish()
    }

    /// Writes the files into a directory, for builders that copy them from there. What was in it is removed.
    pub fn write_to(&self, directory: &Path) -> io::Result<()> {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(()) => fs::create_dir_all(directory)?,
        }
        for (path, entry) in &self.entries {
            let place = directory.join(path);
            match entry {
                Entry::Directory { mode } => {
                    fs::create_dir(&place)?;
                    fs::set_permissions(&place, fs::Permissions::from_mode(*mode))?;
                }
                Entry::File { mode, content } => {
                    fs::write(&place, content)?;
                    fs::set_permissions(&place, fs::Permissions::from_mode(*mode))?;
                }
                Entry::Link { target } => symlink(target, &place)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> RootFileSystem {
        let mut root = RootFileSystem::default();
        root.file("etc/ssl/certs/ca.crt", 0o644, "certificate");
        root.file("bin/tool", 0o755, "program");
        root.link("bin/alias", "tool");
        root
    }

    #[test]
    fn the_order_of_additions_does_not_matter() {
        let mut other = RootFileSystem::default();
        other.link("bin/alias", "tool");
        other.file("bin/tool", 0o755, "program");
        other.file("etc/ssl/certs/ca.crt", 0o644, "certificate");
        assert!(example().layer() == other.layer());
    }

    #[test]
    fn the_layer_and_the_directory_hold_the_same() {
        let folder = tempfile::tempdir().expect("a directory");
        let (written, unpacked) = (folder.path().join("written"), folder.path().join("unpacked"));
        example().write_to(&written).expect("write");
        // A second time, over what is there.
        example().write_to(&written).expect("write again");
        fs::create_dir(&unpacked).expect("a directory");
        fs::write(folder.path().join("layer.tar"), example().layer()).expect("write");
        let tar = std::process::Command::new("tar")
            .args(["--no-same-owner", "-xpf", "../layer.tar"])
            .current_dir(&unpacked)
            .output()
            .expect("tar");
        assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
        assert_eq!(listing(&written), listing(&unpacked));
        assert_eq!(listing(&written).len(), 7, "{:?}", listing(&written));
        assert_eq!(example().size(), 18);
    }

    /// Every path with its mode and its content or target.
    fn listing(directory: &Path) -> Vec<(String, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![directory.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("read").flatten() {
                let path = entry.path();
                let metadata = fs::symlink_metadata(&path).expect("metadata");
                let content = if metadata.is_symlink() {
                    fs::read_link(&path).expect("target").into_os_string().into_encoded_bytes()
                } else if metadata.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).expect("content")
                };
                let name = path.strip_prefix(directory).expect("below").display().to_string();
                found.push((name, metadata.permissions().mode(), content));
            }
        }
        found.sort();
        found
    }
}
