//! `cargo xtask conformance`: runs the conformance cases of the in-memory API server against a real
//! kube-apiserver. The package `five-spot-conformance` does the work; this task provides the server.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Subcommand;
use five_spot_testenv::binaries::Binaries;
use five_spot_testenv::control_plane::{self, ControlPlane};
use five_spot_testenv::run_directory;

use crate::cargo::cargo;

use crate::control_plane as task;

/// Flags of `conformance`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    mode: Mode,
    /// Use the control plane with this name; if it is not running, start one for this run.
    #[arg(long, global = true, default_value = "default", value_parser = task::parse_name)]
    name: String,
}

#[derive(Subcommand)]
enum Mode {
    /// Record the server's answers as the expected ones.
    Record(Cases),
    /// Compare the server's answers with the recorded ones.
    Check(Cases),
    /// Compare the server with the in-memory API server on random operations.
    Walk {
        /// Number of walks, each of a hundred operations.
        #[arg(default_value_t = 25)]
        walks: u64,
    },
}

#[derive(clap::Args)]
struct Cases {
    /// Run only cases whose area and name start with this text, such as `pods: a pod`.
    #[arg(default_value = "")]
    prefix: String,
}

impl Mode {
    /// The arguments of `five-spot-conformance`.
    fn arguments(&self) -> [String; 2] {
        match self {
            Self::Record(cases) => ["record".into(), cases.prefix.clone()],
            Self::Check(cases) => ["check".into(), cases.prefix.clone()],
            Self::Walk { walks } => ["walk".into(), walks.to_string()],
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(record) = control_plane::find(&run_directory::base(), &args.name) {
        return run_suite(&record.management_kubeconfig, &args.mode);
    }
    task::build()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (base, name) = (run_directory::base(), format!("conformance-{}", std::process::id()));
    let server = runtime
        .block_on(ControlPlane::start(&Binaries::from_process()?, &base, &name, |step| {
            eprintln!("starting {step}");
        }))
        .context("failed to start a kube-apiserver")?;
    let result = run_suite(server.management().kubeconfig(), &args.mode);
    runtime.block_on(server.stop())?;
    result
}

fn run_suite(kubeconfig: &Path, mode: &Mode) -> anyhow::Result<()> {
    let suite = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance");
    let [mode, what] = mode.arguments();
    let status = cargo()
        .args(["run", "--quiet", "--package", "five-spot-conformance", "--"])
        .arg(mode)
        .arg(suite)
        .arg(what)
        .env("KUBECONFIG", kubeconfig)
        .status()
        .context("failed to run cargo")?;
    ensure!(status.success(), "the server's answers differ");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn arguments_are_passed_on() {
        let arguments = |line: &str| Line::parse_from(line.split('|')).args.mode.arguments();
        assert_eq!(arguments("xtask|record"), ["record", ""]);
        assert_eq!(arguments("xtask|check|pods: a pod"), ["check", "pods: a pod"]);
        assert_eq!(arguments("xtask|walk"), ["walk", "25"]);
        assert_eq!(arguments("xtask|walk|3|--name|other"), ["walk", "3"]);
    }
}
