//! The machine id of the host, by which the API server tells that a Node is really this machine.

use std::path::{Path, PathBuf};

/// The content that systemd writes into the file until the machine has an id.
const UNINITIALIZED: &str = "uninitialized";

/// The longest id that is accepted; systemd's have 32 characters.
const MAX_BYTES: usize = 256;

/// The reason why the machine id is unusable.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read.
    #[error(
        "cannot read the machine id {}: {source}; mount the host's /etc/machine-id there, set --machine-id-path, or, \
         only where the host has none, --skip-host-id-check",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The refusal of the operating system.
        source: std::io::Error,
    },
    /// The file has no id.
    #[error(
        "{} holds no machine id ({fault}); without one the agent cannot prove that a Node is this machine",
        path.display()
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem with its content.
        fault: &'static str,
    },
}

/// Reads the machine id, as the kubelet reports it in `Node.status.nodeInfo.machineID`.
pub fn read_machine_id(path: &Path) -> Result<String, IdentityError> {
    let content = std::fs::read_to_string(path)
        .map_err(|source| IdentityError::Unreadable { path: path.to_owned(), source })?;
    let id = content.trim();
    let fault = if id.is_empty() {
        "it is empty"
    } else if id == UNINITIALIZED {
        "it says 'uninitialized'"
    } else if id.len() > MAX_BYTES || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "it is not one word"
    } else {
        return Ok(id.to_owned());
    };
    Err(IdentityError::Invalid { path: path.to_owned(), fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machine-id");
        std::fs::write(&path, content).expect("a file");
        read_machine_id(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn the_id_is_read_without_its_line_end() {
        assert_eq!(
            read(b"b08dfa6083e7567a1921a715000001fb\n").as_deref(),
            Ok("b08dfa6083e7567a1921a715000001fb")
        );
    }

    #[test]
    fn a_file_without_an_id_is_refused() {
        for (content, fault) in [
            (&b""[..], "it is empty"),
            (b" \n", "it is empty"),
            (b"uninitialized\n", "it says 'uninitialized'"),
            (b"one two\n", "it is not one word"),
            (b"one\0two\n", "it is not one word"),
        ] {
            let error = read(content).expect_err("refused");
            assert!(error.contains(fault), "{error}");
        }
        assert!(read(&[b'x'; 300]).is_err());
        assert!(read(b"\xff\xff").is_err());
    }

    #[test]
    fn a_missing_file_is_explained() {
        let error = read_machine_id(Path::new("/nonexistent/machine-id")).expect_err("no file").to_string();
        assert!(error.contains("/nonexistent/machine-id") && error.contains("--machine-id-path"), "{error}");
    }
}
