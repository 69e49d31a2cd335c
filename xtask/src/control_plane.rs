//! `cargo xtask control-plane`: manages a real control plane by hand. `five-spot-testenv` does the work; this
//! is its command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use five_spot_testenv::binaries::{self, Binaries};
use five_spot_testenv::build::{self, BuildReport};
use five_spot_testenv::cache::{Cache, CacheEnvironment};
use five_spot_testenv::control_plane::{self, ControlPlaneRecord, StartupReport};
use five_spot_testenv::{guard, node, run_directory};

use crate::output::Output;

/// Flags of `control-plane`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build etcd, Kubernetes, kwok and Cluster API into the cache, if they are missing.
    Build,
    /// Start a management and a workload cluster, which run until `down`.
    Up(Which),
    /// Stop the clusters and remove their data.
    Down(Which),
    /// Print `export` lines: `eval "$(cargo xtask control-plane env)"`.
    Env(Which),
    /// Show every component with its process and its health.
    Status {
        #[command(flatten)]
        which: Which,
        /// Output format.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Run the clusters in the foreground; `up` starts this command in the background.
    #[command(hide = true)]
    Serve(Which),
}

#[derive(clap::Args)]
struct Which {
    /// Name of the control plane; several can run at once.
    #[arg(long, default_value = "default", value_parser = parse_name)]
    name: String,
}

/// Parses a name. It becomes a directory, so it must be a single path component.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.len() <= 40 && text.chars().all(plain) {
        Ok(text.into())
    } else {
        Err("a name consists of 1 to 40 letters, digits, - and _".into())
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Build => print_build(),
        Command::Up(which) => up(&which.name),
        Command::Down(which) => down(&which.name),
        Command::Env(which) => {
            print_exports(&find(&which.name)?);
            Ok(())
        }
        Command::Status { which, output } => status(&which.name, *output),
        Command::Serve(which) => serve(&which.name),
    }
}

/// Builds what is missing, with progress messages on standard error.
pub(crate) fn build() -> anyhow::Result<BuildReport> {
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    let envtest = binaries::envtest_directory();
    build::build(&cache, envtest.as_deref(), |line| eprintln!("{line}"))
        .context("failed to build the control plane")
}

/// Builds what is missing for a real node, unless this machine cannot run one or the variable for leaving it
/// out is set. The tests that need it report why they fail.
pub(crate) fn build_node() -> anyhow::Result<usize> {
    if node::is_left_out() {
        return Ok(0);
    }
    if let Err(error) = node::check() {
        eprintln!("{error}");
        return Ok(0);
    }
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    let report =
        build::build_node(&cache, |line| eprintln!("{line}")).context("failed to build the real node")?;
    Ok(report.built.len())
}

/// Builds Helm and copies the CRDs of the Prometheus Operator, for the tests of the installation, if they are missing.
pub(crate) fn build_for_installation() -> anyhow::Result<usize> {
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    let built = build::build_for_installation(&cache, |line| eprintln!("{line}"))
        .context("failed to build Helm or to copy the CRDs of the Prometheus Operator")?;
    Ok(built.len())
}

fn print_build() -> anyhow::Result<()> {
    let report = build()?;
    let cache = Cache::locate(&CacheEnvironment::from_process())?;
    if report.built.is_empty() {
        println!("nothing to do: everything is in {}", cache.root().display());
    }
    for built in report.built {
        println!("{:<28} {:>6.1} s", built.name, built.took.as_secs_f64());
    }
    Ok(())
}

fn up(name: &str) -> anyhow::Result<()> {
    if let Some(record) = control_plane::find(&run_directory::base(), name) {
        eprintln!("control plane {name} is already up");
        print_exports(&record);
        return Ok(());
    }
    build()?;
    let mut server = guard::this_program()
        .args(["control-plane", "serve", "--name", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start the process that keeps the control plane up")?;
    let reports =
        server.stdout.take().context("the process that keeps the control plane up has no output")?;
    for line in BufReader::new(reports).lines() {
        match serde_json::from_str(&line?)? {
            Line::Step(step) => eprintln!("starting {step}"),
            Line::Failed(error) => bail!("failed to start the control plane: {error}"),
            Line::Ready(record) => {
                let seconds = record.started_in_seconds;
                eprintln!(
                    "control plane {name} is up after {seconds:.1} s in {}",
                    record.directory.display()
                );
                print_exports(&record);
                return Ok(());
            }
        }
    }
    bail!("the process that keeps the control plane up ended without a message: {}", server.wait()?)
}

/// A message from `serve` to `up`: one JSON value per line.
#[derive(serde::Serialize, serde::Deserialize)]
enum Line {
    Step(String),
    Failed(String),
    Ready(ControlPlaneRecord),
}

fn serve(name: &str) -> anyhow::Result<()> {
    guard::detach()?;
    let send = |line: &Line| {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        std::io::stdout().lock().write_all(text.as_bytes())
    };
    let report = |report: StartupReport<'_>| match report {
        StartupReport::Step(step) => send(&Line::Step(step.into())),
        StartupReport::Ready(record) => send(&Line::Ready(record.clone())),
    };
    run_directory::sweep(&run_directory::base());
    let binaries = Binaries::from_process()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let result = runtime.block_on(control_plane::keep_up(&binaries, &run_directory::base(), name, report));
    if let Err(error) = &result {
        send(&Line::Failed(error.to_string()))?;
    }
    Ok(result?)
}

fn down(name: &str) -> anyhow::Result<()> {
    if control_plane::shut_down(&run_directory::base(), name)? {
        eprintln!("control plane {name} is down");
    } else {
        eprintln!("control plane {name} was not up");
    }
    Ok(())
}

fn find(name: &str) -> anyhow::Result<ControlPlaneRecord> {
    control_plane::find(&run_directory::base(), name).with_context(|| {
        format!("control plane {name} is not up: run `cargo xtask control-plane up --name {name}`")
    })
}

fn print_exports(record: &ControlPlaneRecord) {
    println!("export KUBECONFIG='{}'", record.management_kubeconfig.display());
    println!("export FIVE_SPOT_WORKLOAD_KUBECONFIG='{}'", record.workload_kubeconfig.display());
    if let Some(directory) = record.kubectl.parent() {
        println!("export PATH='{}':\"$PATH\"", directory.display());
    }
}

fn status(name: &str, output: Output) -> anyhow::Result<()> {
    #[derive(serde::Serialize)]
    struct Row<'a> {
        component: &'a str,
        pid: u32,
        running: bool,
        healthy: bool,
        log: &'a std::path::Path,
    }
    let record = find(name)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let rows: Vec<Row<'_>> = record
        .components
        .iter()
        .map(|component| Row {
            component: &component.name,
            pid: component.process.pid,
            running: component.process.is_alive(),
            healthy: runtime.block_on(component.probe.is_well()),
            log: &component.log,
        })
        .collect();
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&rows)?),
        Output::Text => {
            println!("{:<36} {:>8}  {:<8} LOG", "COMPONENT", "PID", "HEALTH");
            for row in &rows {
                let health = match (row.running, row.healthy) {
                    (false, _) => "dead",
                    (true, false) => "ill",
                    (true, true) => "well",
                };
                println!("{:<36} {:>8}  {health:<8} {}", row.component, row.pid, row.log.display());
            }
        }
    }
    let ill = rows.iter().filter(|row| !row.running || !row.healthy).count();
    if ill == 0 { Ok(()) } else { bail!("{ill} of {} components are unhealthy", rows.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_directory() {
        for good in ["default", "my-plane_2"] {
            assert_eq!(parse_name(good).as_deref(), Ok(good));
        }
        for bad in ["", "..", "a/b", "a b", "'", &"x".repeat(41)] {
            assert!(parse_name(bad).is_err(), "{bad:?}");
        }
    }
}
