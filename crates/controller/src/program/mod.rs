//! The program `5spot-controller`, which is also what `5spot` does without a subcommand: it reads flags and surroundings,
//! begins to log, finds its cluster, works, and stops when it is told to.

mod definition;
mod herald;
mod home;
mod permissions;
mod refuse;
mod storage;
mod supervise;

use crate::args::{Args, Configuration, Surroundings, explain};
use crate::descriptors;
use crate::logging::{self, Format};
use crate::servers;
use clap::Parser;
use five_spot_cluster::{Connection, WorkloadRules};
use permissions::Attentive;
use refuse::{refuse, requested_format};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use supervise::Ended;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// What the program calls itself to an API server.
const PROGRAM: &str = "5spot-controller";

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
    let (configuration, filter) = match args.configure(Surroundings::observe()) {
        Ok(configured) => configured,
        Err(error) => return refuse(&error, format),
    };
    // It fails only where something logs already; then the lines go there.
    let _ = logging::start(format, filter);
    configuration.say();
    match threads() {
        Ok((workers, supervisor)) => {
            let ended = supervisor.block_on(work(configuration, workers.handle()));
            // What is still busy is cut off: what it has done is in the cluster, and every step can be taken again.
            workers.shutdown_background();
            supervisor.shutdown_background();
            ended.into()
        }
        Err(error) => {
            error!(%error, "Failed to start the threads that do the work");
            ExitCode::FAILURE
        }
    }
}

/// Those who work, and this thread, which listens to signals and says how the others are. It has timers of its own, so
/// that it can do so, and stop the program, even when everyone who works hangs.
fn threads() -> std::io::Result<(Runtime, Runtime)> {
    let workers = Builder::new_multi_thread().enable_all().build()?;
    Ok((workers, Builder::new_current_thread().enable_all().build()?))
}

async fn work(configuration: Configuration, workers: &Handle) -> Ended {
    // Before anything that takes time, so that no signal ends the program unheard.
    let signals = match supervise::signals() {
        Ok(signals) => signals,
        Err(error) => {
            error!(%error, "Failed to listen to signals");
            return Ended::Failed;
        }
    };
    let config = match home::find().await {
        Ok(config) => config,
        Err(error) => {
            say_homeless(&error, configuration.format);
            return Ended::Failed;
        }
    };
    info!(cluster = home::address(&config), "Found the management cluster");
    if let Err(error) = serve(&configuration).await {
        error!(%error, "Failed to serve metrics and health");
        return Ended::Failed;
    }
    let settings = configuration.settings;
    if configuration.runtime_metrics {
        settings.metrics.tell_of(workers);
    }
    let health = settings.health.clone();
    workers.spawn(async move { health.keep_pulse().await });
    let limit = descriptors::raise();
    settings.metrics.tell_of_descriptors();
    let health = settings.health.clone();
    tokio::spawn(async move { descriptors::examine(&health).await });
    let workload_rules = WorkloadRules {
        connections: descriptors::workload_connections(limit),
        ..configuration.workload_rules
    };
    let stop = CancellationToken::new();
    let (witness, refused) = Attentive::new(settings.metrics.clone());
    let connection =
        Connection::network(config, PROGRAM).with_workload_rules(workload_rules).with_witness(witness);
    let client = match connection.management() {
        Ok(client) => client,
        Err(error) => {
            error!(%error, "Failed to make a client of the management cluster");
            return Ended::Failed;
        }
    };
    tokio::spawn(herald::proclaim(settings.health.clone(), client.clone(), herald::own_pod()));
    let namespaces = settings.namespaces.clone();
    workers.spawn(permissions::examine(client.clone(), namespaces, settings.health.clone(), refused));
    workers.spawn(storage::examine(client.clone(), connection.door().clone(), settings.health.clone()));
    let working = workers.spawn(definition::run_while_it_fits(connection, settings, stop.clone()));
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

/// Says that there is no cluster, where a person will see it: on a terminal JSON is hard to read.
fn say_homeless(error: &home::Homeless, format: Format) {
    error!(error = error.cause(), "{error}");
    if format == Format::Json && std::io::stderr().is_terminal() {
        eprintln!("{error}");
    }
}
