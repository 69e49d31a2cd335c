//! The program `5spot-controller`, which is also what `5spot` does without a subcommand: it reads flags and environment,
//! starts to log, finds its cluster, runs the controller, and stops on a signal.

mod definition;
mod management_cluster;
mod permissions;
mod readiness_events;
mod refuse;
mod storage;
mod supervise;

use crate::args::{Args, Configuration, ProgramEnvironment, explain};
use crate::descriptors;
use crate::logging::{self, LogFormat};
use crate::servers;
use clap::Parser;
use five_spot_cluster::{Connection, WorkloadRules};
use management_cluster::NoCluster;
use permissions::RefusalObserver;
use refuse::{refuse, requested_format};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::NonZero;
use std::process::ExitCode;
use supervise::Ended;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// The name of the program in its User-Agent.
const PROGRAM: &str = "5spot-controller";

/// The most worker threads. The program waits for API servers nearly all of the time; one thread for each core of a large
/// machine would cost memory, for its stack and what the allocator keeps for it, and do nothing.
const MOST_WORKERS: usize = 4;

/// Runs the program with `arguments`, of which the first is its name, as in [`std::env::args_os`].
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match Args::try_parse_from(&arguments) {
        Ok(args) => start(args),
        Err(error) => refuse(&explain(error, &arguments), requested_format(&arguments)),
    }
}

/// Runs the program with arguments that have been parsed.
pub fn start(args: Args) -> ExitCode {
    let format = args.log_format;
    let (configuration, filter) = match args.configure(ProgramEnvironment::observe()) {
        Ok(configured) => configured,
        Err(error) => return refuse(&error, format),
    };
    // It fails only if a subscriber is installed already, which then gets the lines.
    let _ = logging::start(format, filter);
    configuration.log();
    match threads() {
        Ok((workers, supervisor)) => {
            let ended = supervisor.block_on(work(configuration, workers.handle()));
            // Work in flight is cut off: every step can be repeated.
            workers.shutdown_background();
            supervisor.shutdown_background();
            ended.into()
        }
        Err(error) => {
            error!(%error, "Failed to start the worker threads");
            ExitCode::FAILURE
        }
    }
}

/// The runtime of the workers, and the runtime of this thread, which handles signals and serves health. It has timers of
/// its own, so that it can do so, and stop the program, even if all workers hang.
fn threads() -> std::io::Result<(Runtime, Runtime)> {
    let available = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers =
        Builder::new_multi_thread().worker_threads(available.min(MOST_WORKERS)).enable_all().build()?;
    Ok((workers, Builder::new_current_thread().enable_all().build()?))
}

async fn work(configuration: Configuration, workers: &Handle) -> Ended {
    // Before anything that takes time, so that no signal is missed.
    let signals = match supervise::signals() {
        Ok(signals) => signals,
        Err(error) => {
            error!(%error, "Failed to listen for signals");
            return Ended::Failed;
        }
    };
    let config = match management_cluster::find().await {
        Ok(config) => config,
        Err(error) => {
            log_no_cluster(&error, configuration.format);
            return Ended::Failed;
        }
    };
    info!(cluster = management_cluster::address(&config), "Found the management cluster");
    if let Err(error) = serve(&configuration).await {
        error!(%error, "Failed to serve metrics and health");
        return Ended::Failed;
    }
    let settings = configuration.settings;
    if configuration.runtime_metrics {
        settings.metrics.export_runtime(workers);
    }
    let health = settings.health.clone();
    workers.spawn(async move { health.check_timers().await });
    let limit = descriptors::raise();
    settings.metrics.export_descriptors();
    settings.metrics.export_memory();
    let health = settings.health.clone();
    tokio::spawn(async move { descriptors::examine(&health).await });
    let workload_rules = WorkloadRules {
        connections: descriptors::workload_connections(limit),
        ..configuration.workload_rules
    };
    let stop = CancellationToken::new();
    let (observer, refused) = RefusalObserver::new(settings.metrics.clone());
    let connection =
        Connection::network(config, PROGRAM).with_workload_rules(workload_rules).with_observer(observer);
    let client = match connection.management() {
        Ok(client) => client,
        Err(error) => {
            error!(%error, "Failed to create a client for the management cluster");
            return Ended::Failed;
        }
    };
    tokio::spawn(readiness_events::report(
        settings.health.clone(),
        settings.metrics.clone(),
        client.clone(),
        readiness_events::own_pod(),
    ));
    let namespaces = settings.namespaces.clone();
    workers.spawn(permissions::examine(
        client.clone(),
        namespaces,
        settings.controller_namespace.clone(),
        settings.health.clone(),
        refused,
    ));
    workers.spawn(storage::examine(client.clone(), connection.transport().clone(), settings.health.clone()));
    let working = workers.spawn(definition::run_while_crd_fits(connection, settings, stop.clone()));
    supervise::supervise(working, stop, signals).await
}

/// Serves from this thread for as long as the program runs.
async fn serve(configuration: &Configuration) -> Result<(), servers::PortError> {
    let settings = &configuration.settings;
    let metrics = servers::listen(configuration.metrics_port, "--metrics-port").await?;
    let health = servers::listen(configuration.health_port, "--health-port").await?;
    let port =
        |listener: &TcpListener| listener.local_addr().map(|address| address.port()).unwrap_or_default();
    info!(metrics_port = port(&metrics), health_port = port(&health), "Serving metrics and health");
    tokio::spawn(servers::serve_metrics(metrics, settings.metrics.clone()));
    tokio::spawn(servers::serve_health(health, settings.health.clone()));
    Ok(())
}

/// Reports that there is no cluster. On a terminal it is also printed as plain text, because JSON is hard to read.
fn log_no_cluster(error: &NoCluster, format: LogFormat) {
    error!(error = error.cause(), "{error}");
    if format == LogFormat::Json && std::io::stderr().is_terminal() {
        eprintln!("{error}");
    }
}
