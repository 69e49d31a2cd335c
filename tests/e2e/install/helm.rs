//! The real `helm`, with the chart of this repository.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use anyhow::ensure;
use five_spot_testenv::binaries;
use five_spot_testenv::cache::{Cache, CacheEnvironment};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::ControlPlane;
use five_spot_testenv::versions::KUBERNETES;
use serde_json::Value;

/// The chart, as a user names it in the root of the repository.
pub(super) const CHART: &str = "deploy/helm/5spot";

/// `helm` with a kubeconfig, in the root of the repository.
pub(super) struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Helm {
    pub(super) fn new(control_plane: &ControlPlane, side: Side) -> anyhow::Result<Self> {
        Ok(Self {
            program: binaries::helm(&Cache::locate(&CacheEnvironment::from_process())?),
            kubeconfig: control_plane.cluster(side).kubeconfig().to_path_buf(),
            home: control_plane.directory().to_path_buf(),
        })
    }

    /// Runs a command line, split at spaces.
    pub(super) async fn run(&self, line: &str) -> std::io::Result<Output> {
        tokio::process::Command::new(&self.program)
            .args(line.split_whitespace())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .current_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
    }

    /// Runs a command line that has to succeed, and returns its output.
    pub(super) async fn ok(&self, line: &str) -> anyhow::Result<String> {
        let output = self.run(line).await?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let warned = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {line}: {printed}{warned}");
        Ok(printed.into_owned())
    }

    /// The message of a command line that has to fail.
    pub(super) async fn refused(&self, line: &str) -> anyhow::Result<String> {
        let output = self.run(line).await?;
        ensure!(!output.status.success(), "helm {line} succeeded");
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The objects of the chart with these values, its namespace included.
    pub(super) async fn render(&self, with_crds: bool, values: &str) -> anyhow::Result<Vec<Value>> {
        let crds = if with_crds { "--include-crds" } else { "" };
        let flags = format!("--namespace 5spot-system --set namespace.create=true {crds} {values}");
        Ok(five_spot_testenv::manifests::parse(&self.ok(&template(&flags)).await?, values)?)
    }

    /// Checks the chart with these values; warnings count as errors.
    pub(super) async fn lint(&self, values: &str) -> anyhow::Result<()> {
        let flags = format!("--strict --namespace 5spot-system --kube-version {KUBERNETES}");
        self.ok(&format!("lint {CHART} {flags} {values}")).await.map(drop)
    }
}

/// The command line that renders the chart. Without a cluster, Helm has to be told the version of Kubernetes.
pub(super) fn template(flags: &str) -> String {
    format!("template 5spot {CHART} --kube-version {KUBERNETES} {flags}")
}
