//! Programs from packages of the distribution, which are downloaded and unpacked but not installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache, CacheError};

/// The reason why a package could not be unpacked into the cache.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// `apt-get` or `dpkg` could not be started.
    #[error(
        "failed to run {program} for the package {package}: {source}; a real node needs Debian or Ubuntu"
    )]
    NoTool {
        /// The program.
        program: &'static str,
        /// The package.
        package: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The package could not be downloaded or unpacked.
    #[error("{program} failed for the package {package}: {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The package.
        package: &'static str,
        /// The end of its output.
        output: String,
    },
    /// The cache could not be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// The packages of a real node: the OCI runtime, the network plugins, and a shell for its pods.
pub(super) const PACKAGES: [&str; 3] = ["runc", "containernetworking-plugins", "busybox-static"];

/// The directory for an unpacked package. Its version depends on the distribution, so the path contains the
/// release of the distribution.
pub(crate) fn place(cache: &Cache, package: &str) -> PathBuf {
    cache.component("debian", &release()).join(package)
}

/// The code name of this distribution's release.
fn release() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map_or_else(|| "unknown".into(), |name| name.trim_matches('"').to_owned())
}

/// Downloads a package and unpacks it into the cache.
pub(super) fn unpack(cache: &Cache, package: &'static str) -> Result<(), PackageError> {
    let place = place(cache, package);
    cache::clear(&place)?;
    let unpacked = cache::partial(&place);
    let downloads = place.with_file_name(format!("{package}.download"));
    cache::clear(&downloads)?;
    cache::create_dir_all(&downloads)?;
    cache::create_dir_all(&unpacked)?;
    let archive = download(package, &downloads)?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg("-x").arg(&archive).arg(&unpacked);
    run("dpkg", package, dpkg)?;
    cache::clear(&downloads)?;
    Ok(cache::install(&place)?)
}

fn download(package: &'static str, directory: &Path) -> Result<PathBuf, PackageError> {
    let download = || {
        let mut apt = Command::new("apt-get");
        apt.args(["download", package]).current_dir(directory);
        run("apt-get", package, apt)
    };
    if download().is_err() {
        // A fresh machine has no package lists yet.
        let mut update = Command::new("apt-get");
        update.arg("update");
        run("apt-get", package, update)?;
        download()?;
    }
    let archives = fs::read_dir(directory).map_err(|source| CacheError::Io {
        action: "list",
        path: directory.to_path_buf(),
        source,
    })?;
    let mut archives = archives.flatten().map(|entry| entry.path());
    archives.find(|path| path.extension().is_some_and(|extension| extension == "deb")).ok_or_else(|| {
        PackageError::Failed { program: "apt-get", package, output: "no archive was downloaded".into() }
    })
}

fn run(program: &'static str, package: &'static str, mut command: Command) -> Result<(), PackageError> {
    let output = command.output().map_err(|source| PackageError::NoTool { program, package, source })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let output = lines[lines.len().saturating_sub(5)..].join("\n");
    Err(PackageError::Failed { program, package, output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_tool_is_named_with_its_package_and_output() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo 'E: Unable to locate package' >&2; exit 100"]);
        let message = run("apt-get", "runc", failing).expect_err("it failed").to_string();
        assert_eq!(message, "apt-get failed for the package runc: E: Unable to locate package");
    }

    #[test]
    fn a_missing_tool_names_the_distributions_that_work() {
        let message =
            run("dpkg", "runc", Command::new("/nonexistent/dpkg")).expect_err("missing").to_string();
        assert!(message.contains("needs Debian or Ubuntu"), "{message}");
    }
}
