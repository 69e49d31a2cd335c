//! `--oneshot`: one look, one request at most.

use crate::agent::AgentSettings;
use crate::annotate;
use crate::client::{Client, ClientError};
use crate::matcher::Matcher;
use crate::procfs::{Found, ProcRoot, ProcfsError, Scanner};
use crate::watch::{ConfigUpdate, read_once};
use five_spot_api::reclaim::ConfigError;
use jiff::Timestamp;
use tracing::{info, warn};

/// The result of one look.
#[derive(Debug, PartialEq, Eq)]
pub enum OneshotOutcome {
    /// A process matched and the Node is annotated.
    Annotated(Found),
    /// Nothing matched, or there is no configuration.
    NothingMatched,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum OneshotError {
    /// The configuration cannot be read.
    #[error("cannot read the configuration: {0}")]
    Read(ClientError),
    /// The configuration is malformed.
    #[error("the configuration is malformed: {0}")]
    Malformed(ConfigError),
    /// The processes cannot be read.
    #[error(transparent)]
    Procfs(#[from] ProcfsError),
    /// A process that is there could not be read.
    #[error(
        "not every process could be read, for lack of memory or file descriptors: none of the others matches"
    )]
    Incomplete,
    /// The Node cannot be annotated.
    #[error("process {} ({}) matched {:?}, but the node could not be annotated: {source}{}", found.pid, found.comm,
            found.pattern, hint(source))]
    Annotate {
        /// The process that matched.
        found: Found,
        /// The failure.
        source: ClientError,
    },
}

fn hint(error: &ClientError) -> String {
    annotate::refusal(error).map(|cause| format!("; {cause}")).unwrap_or_default()
}

/// Reads the configuration, looks at every process once, and annotates the Node if one matches.
pub async fn run(settings: &AgentSettings, client: &Client) -> Result<OneshotOutcome, OneshotError> {
    let node = &settings.node;
    let config = match read_once(client, &node.name).await.map_err(OneshotError::Read)? {
        ConfigUpdate::Applied { config, .. } => config.map_err(OneshotError::Malformed)?.config,
        ConfigUpdate::Missing => {
            warn!("there is no ConfigMap for this node: nothing can match");
            return Ok(OneshotOutcome::NothingMatched);
        }
    };
    let mut scanner = Scanner::new(ProcRoot::open(&settings.proc_root)?);
    let Some(found) = scanner.look(&Matcher::new(&config))? else {
        if scanner.is_incomplete() {
            return Err(OneshotError::Incomplete);
        }
        info!(processes = scanner.count()?, "no process matches");
        return Ok(OneshotOutcome::NothingMatched);
    };
    info!(matched_pattern = found.pattern, pid = found.pid, comm = found.comm, "process matched");
    let request = annotate::request_for(&found.pattern, Timestamp::now());
    match annotate::send(client, node, &request).await {
        Ok(()) => {
            info!(node = node.name, reason = request.reason, "node annotated — reclaim requested");
            Ok(OneshotOutcome::Annotated(found))
        }
        Err(source) => Err(OneshotError::Annotate { found, source }),
    }
}
