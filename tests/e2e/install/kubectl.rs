//! The real `kubectl` as the administrator of a cluster.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::ensure;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::ControlPlane;
use serde_json::Value;

/// `kubectl` with a kubeconfig, in the root of the repository.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(control_plane: &ControlPlane, side: Side) -> Self {
        Self {
            program: control_plane.kubectl().to_path_buf(),
            kubeconfig: control_plane.cluster(side).kubeconfig().to_path_buf(),
            home: control_plane.directory().to_path_buf(),
        }
    }

    /// Runs a command line, split at spaces.
    pub(crate) async fn run(&self, line: &str) -> std::io::Result<Output> {
        tokio::process::Command::new(&self.program)
            .args(line.split_whitespace())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
    }

    /// Runs a command line that has to succeed, and returns what it printed: output and warnings.
    pub(crate) async fn ok(&self, line: &str) -> anyhow::Result<(String, String)> {
        let output = self.run(line).await?;
        let (printed, warned) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "kubectl {line}: {printed}{warned}");
        Ok((printed.into_owned(), warned.into_owned()))
    }

    /// The JSON that a command line prints.
    pub(crate) async fn json(&self, line: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.ok(line).await?.0)?)
    }

    /// The documents of a kustomization.
    pub(crate) async fn build(&self, folder: &str) -> anyhow::Result<Vec<Value>> {
        let (text, _) = self.ok(&format!("kustomize {folder}")).await?;
        Ok(five_spot_testenv::manifests::parse(&text, folder)?)
    }
}
