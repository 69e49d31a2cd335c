//! The sources that images are made from, and the directories of this machine that must not show in them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::cargo;

/// A copy of the repository, and the directory for what is built from it.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    pub(super) repository: PathBuf,
    pub(super) target_directory: PathBuf,
    /// The directories with the sources of dependencies: one for each registry or mirror.
    pub(super) registries: Vec<PathBuf>,
}

impl Sources {
    /// The repository of this program, and the target directory that cargo uses for it. Downloads dependencies that are
    /// missing.
    pub(super) fn of_this_repository() -> anyhow::Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let repository = repository.canonicalize().context("the repository of this program is gone")?;
        let output = cargo::cargo()
            .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
            .arg(repository.join("Cargo.toml"))
            .output()
            .context("failed to run cargo metadata")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: Value =
            serde_json::from_slice(&output.stdout).context("cargo metadata wrote no JSON")?;
        let target =
            metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(Self { repository, target_directory: target.into(), registries: registries(&metadata) })
    }

    /// Another copy of the same sources in this directory, with a target directory of its own.
    pub(super) fn in_directory(&self, directory: &Path) -> Self {
        Self {
            repository: directory.join("sources"),
            target_directory: directory.join("built"),
            registries: self.registries.clone(),
        }
    }

    /// Every directory of this machine whose name a compiler could write into a program, with the name that it writes
    /// instead. If two contain a file, the later one applies.
    pub(super) fn replacements(&self) -> Vec<(&Path, &'static str)> {
        let registries = self.registries.iter().map(|registry| (registry.as_path(), "/crates"));
        [(self.repository.as_path(), "/5spot"), (self.target_directory.as_path(), "/target")]
            .into_iter()
            .chain(registries)
            .collect()
    }
}

/// The directories that contain the packages of registries.
fn registries(metadata: &Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let from_elsewhere = packages.filter(|package| !package["source"].is_null());
    let manifests = from_elsewhere.filter_map(|package| package["manifest_path"].as_str());
    let mut found: Vec<PathBuf> =
        manifests.filter_map(|path| Path::new(path).ancestors().nth(2)).map(Path::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_directory_of_each_registry_is_found_once() {
        let package = |source: Value, path: &str| json!({"source": source, "manifest_path": path});
        let metadata = json!({"packages": [
            package(json!("registry+https://example"), "/home/me/.cargo/registry/src/example-1/serde-1.0.0/Cargo.toml"),
            package(json!("registry+https://example"), "/home/me/.cargo/registry/src/example-1/ring-0.17.0/Cargo.toml"),
            package(Value::Null, "/home/me/5spot/crates/core/Cargo.toml"),
        ]});
        assert_eq!(registries(&metadata), [Path::new("/home/me/.cargo/registry/src/example-1")]);
    }
}
