//! The command line and the environment of the agent: a flag wins over its variable, a variable over the default.

mod values;

use crate::client::SERVICE_ACCOUNT_FOLDER;
use crate::detector::Choice;
use crate::logging::LogFormat;
use clap::{ArgAction, Parser, Subcommand};
use std::path::PathBuf;
use values::node_name;

/// The folder of the readiness socket.
pub const STATE_FOLDER: &str = "/run/5spot";

/// Requests the return of a lent machine when its owner starts a program
///
/// Runs on a node that 5-Spot lends to a cluster. It looks for the processes that the ConfigMap
/// `reclaim-agent-<NODE_NAME>` in the namespace 5spot-system lists. When one of them starts, it annotates the Node, and
/// the controller removes the node at once. Processes in Kubernetes pods never match. The agent only reads processes, and
/// sends them no signals.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "5spot-reclaim-agent",
    version,
    after_help = AFTER_HELP,
    after_long_help = AFTER_LONG_HELP,
    subcommand_negates_reqs = true
)]
pub struct Args {
    /// Filesystem root mapped to /proc
    ///
    /// For sandboxed and test runs only.
    #[arg(long, value_name = "PATH", env = "RECLAIM_PROC_ROOT", default_value = "/proc")]
    pub proc_root: PathBuf,

    /// Node to annotate
    ///
    /// The manifest sets it from the pod's spec.nodeName. The agent patches this Node and no other.
    #[arg(long, value_name = "NAME", env = "NODE_NAME", required = true, value_parser = node_name)]
    pub node_name: Option<String>,

    /// Process-event source
    ///
    /// netlink detects a program within a millisecond and costs nothing while none starts. It needs hostNetwork and
    /// hostPID, and `CAP_NET_ADMIN` on kernels before 6.6. poll detects it within `poll_interval_ms` and needs only
    /// hostPID, but misses programs that end sooner. auto uses netlink, and poll where netlink is not available.
    #[arg(long, value_name = "DETECTOR", env = "RECLAIM_DETECTOR", value_enum, default_value_t = Choice::Auto)]
    pub detector: Choice,

    /// Host machine-id file
    ///
    /// Its content must equal the Node's status.nodeInfo.machineID, or the API server refuses the annotations.
    #[arg(long, value_name = "PATH", env = "MACHINE_ID_PATH", default_value = "/etc/machine-id")]
    pub machine_id_path: PathBuf,

    /// Skip the host-identity cross-check before PATCH
    ///
    /// Defence in depth: leave it on wherever the host has a machine-id.
    #[arg(
        long,
        value_name = "true|false",
        env = "SKIP_HOST_ID_CHECK",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub skip_host_id_check: bool,

    /// Run the detector once and exit
    ///
    /// For smoke tests. This is not a dry run: if a process matches, the node is removed. Exits with 0 if a process matched
    /// and the Node was annotated, 3 if nothing matched, 1 on a failure.
    #[arg(long)]
    pub oneshot: bool,

    /// The format of log lines [addition]
    #[arg(long, value_name = "FORMAT", env = "RUST_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// Directory of the socket on which the agent answers `probe` [addition]
    #[arg(long, value_name = "PATH", env = "RECLAIM_STATE_DIR", default_value = STATE_FOLDER, global = true)]
    pub state_dir: PathBuf,

    /// Directory with the files `token` and `ca.crt` of the service account [addition]
    #[arg(
        long,
        value_name = "PATH",
        env = "RECLAIM_SERVICE_ACCOUNT_DIR",
        default_value = SERVICE_ACCOUNT_FOLDER,
        hide_short_help = true
    )]
    pub service_account_dir: PathBuf,

    /// Something other than the agent itself.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Something other than the agent itself.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Ask the running agent whether it is ready; exits with 0 if it is, 1 if not [addition]
    ///
    /// The kubelet uses it as the readiness probe, because the image has no shell.
    Probe,
}

const AFTER_HELP: &str = "\
Exit codes: 0 ended by a signal, 1 failure, 2 invalid arguments; with --oneshot also 3 nothing matched.
For more, use --help.";

const AFTER_LONG_HELP: &str = "\
Configuration (key reclaim.toml of the ConfigMap reclaim-agent-<NODE_NAME>, watched; every change re-arms the agent):
  match_commands         Exact process names, case-sensitive, as in `ps -o comm`
  match_argv_substrings  Substrings of the command line, arguments joined by single spaces
  match_uids             Only processes of these user ids; empty for all [addition]
  poll_interval_ms       Milliseconds between two scans of --detector=poll, 50 to 60000 [default: 250]
Without a ConfigMap the agent idles; with both lists empty it is armed but inert.

Environment:
  RUST_LOG   The log filter: a level (trace, debug, info, warn, error, off), optionally by target, as in
             info,five_spot_agent=debug [default: info]
  NO_COLOR   No colours in text logs, also on a terminal
  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT
             The API server; the kubelet sets them in every pod

Exit codes: 0 ended by a signal, 1 failure, 2 invalid arguments; with --oneshot also 3 nothing matched.

Examples:
  Show whether the agent of a node is ready, and what it is doing:
    kubectl exec -n 5spot-system <agent pod> -- 5spot-reclaim-agent probe
  Scan once, and request a reclaim if a process matches:
    kubectl exec -n 5spot-system <agent pod> -- 5spot-reclaim-agent --oneshot
  Poll instead of using process events, on every node:
    kubectl set env -n 5spot-system ds/5spot-reclaim-agent RECLAIM_DETECTOR=poll

Options marked [addition] go beyond the documented interface.";

#[cfg(test)]
mod tests;
