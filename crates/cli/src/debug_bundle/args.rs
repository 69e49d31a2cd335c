//! The flags of `5spot debug-bundle`.

use crate::cluster_access::{ClusterArgs, object_name};
use std::path::PathBuf;

/// Collect what a bug report needs into one .tar.gz
///
/// Versions, the controller's manifests, logs, metrics and readiness, ScheduledMachines with their Machines and provider
/// objects, events, the CRDs, roles and reclaim agents of 5-Spot, and the output of 5spot doctor and 5spot explain. It
/// never contains a Secret, and values that look like credentials are removed from objects and logs. The bundle lists what
/// you may not read. Nothing is changed in the cluster.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the comments are the help text")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The file to write, or - for standard output [default: 5spot-debug-TIME.tar.gz]
    #[arg(short, long = "filename", visible_alias = "file", value_name = "FILE.tar.gz")]
    pub file: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,

    /// Only the ScheduledMachines and events of this namespace [default: all namespaces]
    #[arg(short, long, value_name = "NAMESPACE", value_parser = object_name, help_heading = "Cluster")]
    pub namespace: Option<String>,

    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const EXAMPLES: &str = "\
Examples:
  5spot debug-bundle
  5spot debug-bundle -f ticket-4711.tar.gz --context management
  5spot debug-bundle -n desks -f - | tar -tzf -

The file can be read by its owner only. README.txt in it says what each file is and what is missing.

Exit status: 0 if the bundle was written, 1 if the cluster cannot be queried or the file cannot be
written, 2 if the command line is invalid.";
