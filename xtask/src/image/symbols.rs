//! The symbols of a program, which are kept beside its image and not in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Copies the symbols of a program to `kept`, and the program without them to `stripped`. Both have the same build id, by
/// which debuggers find one for the other.
pub(super) fn split(program: &Path, kept: &Path, stripped: &Path) -> anyhow::Result<()> {
    let tool = objcopy()?;
    for (option, result) in [("--only-keep-debug", kept), ("--strip-all", stripped)] {
        let status = Command::new(&tool).arg(option).arg(program).arg(result).status();
        let status = status.with_context(|| format!("failed to run {}", tool.display()))?;
        ensure!(status.success(), "{} {option} {} failed: {status}", tool.display(), program.display());
    }
    Ok(())
}

/// The objcopy that comes with Rust, which knows every architecture, and gives the same bytes wherever the same Rust is
/// installed; else that of this machine.
fn objcopy() -> anyhow::Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir"]).output().context("failed to run rustc")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let shipped = libraries.with_file_name("bin").join("rust-objcopy");
    Ok(if shipped.is_file() { shipped } else { "objcopy".into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_program_runs_without_its_symbols() {
        let folder = tempfile::tempdir().expect("a directory");
        let (kept, stripped) = (folder.path().join("kept"), folder.path().join("stripped"));
        let program = std::env::current_exe().expect("this program");
        split(&program, &kept, &stripped).expect("objcopy");
        let size = |path: &Path| fs::metadata(path).expect("a file").len();
        assert!(size(&stripped) < size(&program) && size(&kept) > 0);
        let listed = Command::new(&stripped).arg("--list").output().expect("it runs");
        assert!(listed.status.success());
    }
}
