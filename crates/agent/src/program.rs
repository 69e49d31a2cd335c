//! The program `5spot-reclaim-agent`: reads flags and variables, starts the log, and runs until a signal stops it.

use crate::agent::{self, AgentSettings};
use crate::annotate::OwnNode;
use crate::args::{Args, Command};
use crate::client::{Client, ClusterAccess};
use crate::detector::{DetectorKind, choose};
use crate::identity::read_machine_id;
use crate::logging;
use crate::oneshot::{self, OneshotOutcome};
use crate::probe::{self, SharedState};
use crate::procfs::{ProcRoot, ProcfsError, Scanner};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

/// The exit code of `--oneshot` when nothing matched.
const NOTHING_MATCHED: u8 = 3;

/// Runs the program with `arguments`, of which the first is its name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    match &args.command {
        Some(Command::Probe) => probe(&args.state_dir),
        None => start(&args),
    }
}

/// Prints help, or what is wrong with the command line, and returns the exit code for it.
fn refuse(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn probe(state_folder: &Path) -> ExitCode {
    use std::io::Write;
    let mut output = std::io::stdout();
    match probe::ask(state_folder) {
        Ok(state) => {
            let _ = writeln!(output, "{}", serde_json::to_string(&state).unwrap_or_default());
            if state.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let _ = writeln!(
                output,
                "the agent does not respond on {}: {error}",
                probe::socket_path(state_folder).display()
            );
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args) -> ExitCode {
    let directives = std::env::var("RUST_LOG").ok();
    let filter = match logging::filter(directives.as_deref()) {
        Ok(filter) => filter,
        Err(error) => {
            let value = directives.unwrap_or_default();
            let message = format!("invalid value '{value}' for 'RUST_LOG': {error}; for example 'info'");
            return refuse(&Args::command().error(ErrorKind::InvalidValue, message));
        }
    };
    logging::start(args.log_format, filter);
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            error!(%error, "the agent cannot start");
            ExitCode::FAILURE
        }
    }
}

/// An error that ends the program.
type Fatal = Box<dyn std::error::Error>;

fn run(args: &Args) -> Result<ExitCode, Fatal> {
    let access =
        ClusterAccess::from_variables(|name| std::env::var(name).ok(), args.service_account_dir.clone())?;
    let client = Client::new(access);
    let settings = settings(args)?;
    // One thread for everything but the detector.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let code = if args.oneshot {
        once(&runtime, &settings, &client)
    } else {
        stay(&runtime, args, settings, client)
    };
    // A name that is being resolved must not hold up the end.
    runtime.shutdown_background();
    code
}

/// Reads what the agent needs of its host, and chooses the detector.
fn settings(args: &Args) -> Result<AgentSettings, Fatal> {
    let machine_id = if args.skip_host_id_check {
        warn!("the host-identity check is off: a Node of another machine with this name would be annotated");
        None
    } else {
        Some(read_machine_id(&args.machine_id_path)?)
    };
    let mut processes = Scanner::new(ProcRoot::open(&args.proc_root)?);
    report_processes(&mut processes)?;
    let kind = choose(args.detector, processes.root(), &own_program())?;
    let name = args.node_name.clone().ok_or("NODE_NAME is not set")?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        node = name,
        detector = kind.as_str(),
        proc_root = %args.proc_root.display(),
        machine_id_path = %args.machine_id_path.display(),
        skip_host_id_check = args.skip_host_id_check,
        oneshot = args.oneshot,
        "agent started"
    );
    Ok(AgentSettings {
        node: OwnNode { name, machine_id },
        proc_root: args.proc_root.clone(),
        choice: args.detector,
        kind,
    })
}

/// Logs the number of processes, and warns if they are not those of the host.
fn report_processes(scanner: &mut Scanner) -> Result<(), ProcfsError> {
    let processes = scanner.count()?;
    let root = scanner.root();
    if cfg!(target_os = "linux") && root.is_from_kernel() && !root.shows_host() {
        warn!(
            processes,
            "only the processes of this pod are visible: set hostPID: true, or no process of the host can match; if it is \
             set, /proc hides processes from this user (hidepid)"
        );
    } else {
        info!(processes, "processes are visible");
    }
    Ok(())
}

/// The program that the self-test of process events starts: this one, because the image has no other.
fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

fn once(runtime: &Runtime, settings: &AgentSettings, client: &Client) -> Result<ExitCode, Fatal> {
    Ok(match runtime.block_on(oneshot::run(settings, client))? {
        OneshotOutcome::Annotated(_) => ExitCode::SUCCESS,
        OneshotOutcome::NothingMatched => ExitCode::from(NOTHING_MATCHED),
    })
}

fn stay(runtime: &Runtime, args: &Args, settings: AgentSettings, client: Client) -> Result<ExitCode, Fatal> {
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let state = SharedState::new(DetectorKind::as_str(settings.kind));
        match probe::listen(&args.state_dir) {
            Ok(listener) => drop(tokio::spawn(probe::serve(listener, state.clone()))),
            Err(error) => warn!(
                %error,
                folder = %args.state_dir.display(),
                "no readiness socket: `5spot-reclaim-agent probe` will fail"
            ),
        }
        tokio::select! {
            error = agent::run(settings, client, state) => Err(error.into()),
            _ = terminate.recv() => Ok(stopped("SIGTERM")),
            _ = interrupt.recv() => Ok(stopped("SIGINT")),
        }
    })
}

fn stopped(signal: &str) -> ExitCode {
    info!(signal, "agent stopped");
    ExitCode::SUCCESS
}
