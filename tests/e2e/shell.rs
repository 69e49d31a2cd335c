//! Commands from findings and documentation, run by a shell with the real `kubectl` and `5spot`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::ControlPlane;
use tokio::process::Command;

/// The timeout for a command that never ends.
const GUARD: Duration = Duration::from_mins(2);

/// The command-line tools: `cargo xtask e2e` builds them into the directory of this program.
pub(crate) fn five_spot() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("5spot"))
}

/// Copies a program in a process of its own. If this process had the copy open for writing, a child that another test
/// starts at that moment would have it open as well until it runs its own program, and the copy could not be
/// started meanwhile.
pub(crate) fn copy_program(from: &str, to: &Path) -> anyhow::Result<()> {
    let status = std::process::Command::new("cp").arg(from).arg(to).status()?;
    ensure!(status.success(), "failed to copy {from}: {status}");
    Ok(())
}

/// A shell of the administrator of a cluster, in the root of the repository unless another directory is
/// given.
pub(crate) struct Shell {
    directory: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
    path: OsString,
}

impl Shell {
    pub(crate) fn new(control_plane: &ControlPlane, side: Side) -> anyhow::Result<Self> {
        let five_spot = five_spot()?;
        ensure!(five_spot.exists(), "{} is not built: run `cargo xtask e2e`", five_spot.display());
        let folders =
            [control_plane.kubectl(), &five_spot].map(|program| program.parent().map(Path::to_owned));
        let system = [PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
        Ok(Self {
            directory: Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
            kubeconfig: control_plane.cluster(side).kubeconfig().to_owned(),
            home: control_plane.directory().to_owned(),
            path: std::env::join_paths(folders.into_iter().flatten().chain(system))?,
        })
    }

    /// The same shell in another directory, for commands that write files.
    pub(crate) fn in_directory(self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self }
    }

    /// Runs a command. All parts of its pipes have to succeed.
    pub(crate) async fn run(&self, command: &str) -> anyhow::Result<Output> {
        let child = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", command])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBE_EDITOR", "true")
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        tokio::time::timeout(GUARD, child)
            .await
            .with_context(|| format!("{command} does not end"))?
            .context("bash")
    }

    /// Runs a command that has to succeed, and returns its output.
    pub(crate) async fn ok(&self, command: &str) -> anyhow::Result<String> {
        let output = self.run(command).await?;
        let (printed, warned) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{command}: {}: {printed}{warned}", output.status);
        Ok(printed.into_owned())
    }
}
