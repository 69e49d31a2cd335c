//! The file that the bundle is written to. It appears when it is complete, for its owner only.

use super::archive;
use jiff::Timestamp;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The place for a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    File { path: PathBuf, overwrite: bool },
}

/// A destination that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    #[error("{} exists already; choose another name, or overwrite it with --force", .0.display())]
    Exists(PathBuf),
    #[error("{} is a directory; name a file in it", .0.display())]
    Directory(PathBuf),
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    #[error("standard output is a terminal; name a file with -f, or redirect it")]
    Terminal,
    #[error("failed to write {what}")]
    Write { what: String, source: io::Error },
}

impl Destination {
    /// The destination that the flags choose.
    pub fn new(file: Option<&Path>, overwrite: bool, now: Timestamp) -> Self {
        match file {
            Some(path) if path == Path::new("-") => Self::Stdout,
            Some(path) => Self::File { path: path.to_owned(), overwrite },
            None => {
                let name = format!("5spot-debug-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ"));
                Self::File { path: name.into(), overwrite }
            }
        }
    }

    /// Fails early, before anything is collected.
    pub fn check(&self) -> Result<(), DestinationError> {
        match self {
            Self::Stdout if io::stdout().is_terminal() => Err(DestinationError::Terminal),
            Self::File { path, .. } if path.is_dir() => Err(DestinationError::Directory(path.clone())),
            Self::File { path, .. } if !folder_of(path).is_dir() => {
                Err(DestinationError::NoDirectory(folder_of(path).to_owned()))
            }
            Self::File { path, overwrite: false } if path.symlink_metadata().is_ok() => {
                Err(DestinationError::Exists(path.clone()))
            }
            Self::Stdout | Self::File { .. } => Ok(()),
        }
    }

    /// Writes the files. Returns the size of the archive.
    pub fn write(&self, files: &[(String, Vec<u8>)], now: Timestamp) -> Result<u64, DestinationError> {
        let mut bytes = Vec::new();
        let contents = files.iter().map(|(path, content)| (path.as_str(), content.as_slice()));
        let failed = |source| DestinationError::Write { what: self.to_string(), source };
        archive::write(contents, now, &mut bytes).map_err(failed)?;
        match self {
            Self::Stdout => match io::stdout().lock().write_all(&bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                result => result.map_err(failed)?,
            },
            Self::File { path, overwrite } => self.write_file(path, *overwrite, &bytes)?,
        }
        Ok(bytes.len() as u64)
    }

    fn write_file(&self, path: &Path, overwrite: bool, bytes: &[u8]) -> Result<(), DestinationError> {
        let failed = |source| DestinationError::Write { what: self.to_string(), source };
        // For its owner only (0600), as every temporary file.
        let mut file = NamedTempFile::new_in(folder_of(path)).map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)?;
        if overwrite {
            file.persist(path).map_err(|error| failed(error.error))?;
            return Ok(());
        }
        match file.persist_noclobber(path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DestinationError::Exists(path.to_owned()))
            }
            Err(error) => Err(failed(error.error)),
        }
    }
}

/// The directory of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File { path, .. } => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn now() -> Timestamp {
        "2026-11-17T12:00:00Z".parse().expect("a time")
    }

    #[test]
    fn without_a_name_the_time_is_the_name() {
        let destination = Destination::new(None, false, now());
        assert_eq!(destination.to_string(), "5spot-debug-20261117T120000Z.tar.gz");
        assert_eq!(Destination::new(Some(Path::new("-")), false, now()), Destination::Stdout);
    }

    #[test]
    fn an_existing_file_is_overwritten_only_by_force() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.tar.gz");
        let files = [("a".to_owned(), b"b".to_vec())];
        let destination = |overwrite| Destination::new(Some(&path), overwrite, now());
        destination(false).check().expect("it does not exist");
        destination(false).write(&files, now()).expect("written");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        let error = destination(false).check().expect_err("it exists").to_string();
        assert!(error.contains("--force"), "{error}");
        assert!(matches!(destination(false).write(&files, now()), Err(DestinationError::Exists(_))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changed");
        destination(true).write(&files, now()).expect("overwritten");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_directory_is_no_file_and_has_to_exist() {
        let refusal = |path: &str| {
            let destination = Destination::new(Some(Path::new(path)), true, now());
            destination.check().expect_err("it cannot be written").to_string()
        };
        assert_eq!(refusal("/nowhere/at/all.tar.gz"), "there is no directory /nowhere/at");
        assert_eq!(refusal("/"), "/ is a directory; name a file in it");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let destination = Destination::new(Some(Path::new("/nowhere/at/all.tar.gz")), false, now());
        let error = destination.write(&[], now()).expect_err("there is none").to_string();
        assert!(error.contains("/nowhere/at/all.tar.gz"), "{error}");
    }
}
