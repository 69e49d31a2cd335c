//! A second build of an image, from another copy of the same commit, in other directories.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use five_spot_image::Image;
use tempfile::TempDir;

use super::Shipped;
use super::sources::Sources;
use super::{build, contents, symbols};

/// A copy of the commit that the repository is at.
pub(super) struct SecondCopy {
    directory: TempDir,
    sources: Sources,
}

impl SecondCopy {
    /// Clones the repository into the directory for temporary files, where the programs then need 2 GB.
    pub(super) fn of(sources: &Sources) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir().context("failed to create a directory for the second copy")?;
        let copy = sources.in_directory(directory.path());
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet"]).arg(&sources.repository).arg(&copy.repository);
        let status = clone.status().context("failed to run git")?;
        ensure!(status.success(), "failed to clone the repository: {status}");
        Ok(Self { directory, sources: copy })
    }

    /// Builds the program again, and fails if its image differs from `image`. The program is then left in `output`.
    pub(super) fn compare(
        &self,
        shipped: &Shipped,
        target: &str,
        image: &Image,
        output: &Path,
    ) -> anyhow::Result<()> {
        let program = build::release(shipped, target, &self.sources)?;
        let stripped = self.directory.path().join(shipped.program);
        symbols::split(&program, &stripped.with_extension("debug"), &stripped)?;
        let again = image.clone().with_root(contents::root(shipped, &stripped)?);
        if again.digest() == image.digest() {
            return Ok(());
        }
        let kept = output.join(format!("{}.second", shipped.program));
        fs::copy(&stripped, &kept).with_context(|| format!("failed to write {}", kept.display()))?;
        bail!(
            "two builds of {} differ: {} and {}; compare {} with {}",
            shipped.program,
            image.digest(),
            again.digest(),
            kept.display(),
            output.join("rootfs").join(shipped.program).join(contents::program_path(shipped)).display()
        )
    }
}
