//! One look at one object, with a plain connection and without watches.

use crate::cache::caches::{Caches, ClusterSettings};
use crate::cache::read_once::read_once;
use crate::cache::start::unwatched;
use crate::cache::workload::READ_ONCE_WITHIN;
use crate::transport::connection::Connection;
use crate::transport::error::CallError;
use crate::transport::key::ObjectKey;
use crate::transport::operation::TargetKind;
use crate::view::assemble::{Cached, assemble};
use crate::view::confirm::{ConfirmScope, confirm};
use crate::view::observed::Observed;
use crate::view::pod_watch::watch_pods;
use five_spot_core::world::Failures;
use std::sync::Arc;

/// The reason for which an object could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// There is no client of the management cluster.
    #[error("failed to create a client for the management cluster: {0}")]
    Client(#[from] kube::Error),
    /// The management cluster could not be read.
    #[error("{0}")]
    Read(#[from] CallError),
}

/// An object and its world, as one look shows them.
pub struct Looked {
    observed: Box<Observed>,
    unread: Option<String>,
}

impl Looked {
    /// The object and its world.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The failed request to the workload cluster, if there was one. The world then lacks what it would have shown, such as the
    /// pods of the Node.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }
}

/// Looks at one object: reads it, and everything that a decision about it depends on, from the API servers. Returns `None`
/// if there is no such object.
///
/// The world is assembled by the code that a controller uses, so that [`Observed::decide`] gives the decision that a
/// controller would make at this moment. Only what a controller remembers of its own attempts (failures, refused
/// evictions) is not known here. Nothing is written, and no watch is opened. A workload cluster that does not answer costs a
/// few seconds, and what it would have shown.
///
/// [`Observed::decide`]: crate::view::observed::Observed::decide
pub async fn look(
    connection: &Connection,
    key: &ObjectKey,
    settings: &ClusterSettings,
) -> Result<Option<Looked>, LookError> {
    let caches = unwatched(connection.clone(), settings.clone())?;
    if !read_once(&caches, key).await? {
        return Ok(None);
    }
    let failures = Failures::default();
    let Cached::Known(observed) = assemble(&caches, key, &failures).await else { return Ok(None) };
    watch_pods(&caches, key, &observed, observed.decide(caches.now()).watch_pods);
    let Some(looked) = confirm_in_time(&caches, key, observed, &failures).await? else { return Ok(None) };
    let needs_pods = looked.observed.decide(caches.now()).watch_pods;
    let has_pods = looked.observed.world.node.found().is_none_or(|node| node.pods.is_some());
    if looked.unread.is_some() || !needs_pods || has_pods {
        return Ok(Some(looked));
    }
    watch_pods(&caches, key, &looked.observed, true);
    Ok(confirm_in_time(&caches, key, looked.observed, &failures).await?)
}

/// Confirms what was read. If the workload cluster fails, the world stays as it was assembled: everything else can be said
/// without it.
async fn confirm_in_time(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    observed: Box<Observed>,
    failures: &Failures,
) -> Result<Option<Looked>, CallError> {
    let confirming = confirm(caches, key, &observed, ConfirmScope::Everything, failures);
    let has_link = observed.link.is_some() || observed.former_link.is_some();
    let confirmed = if has_link {
        tokio::time::timeout(READ_ONCE_WITHIN, confirming).await
    } else {
        Ok(confirming.await)
    };
    let unread = match confirmed {
        Ok(Ok(confirmed)) => {
            return Ok(
                confirmed.map(|confirmed| Looked { observed: confirmed.into_observed(), unread: None })
            );
        }
        Ok(Err(error)) if is_of_workload_cluster(&error.operation.kind) => error.to_string(),
        Ok(Err(error)) => return Err(error),
        Err(_) => format!("no answer within {} s", READ_ONCE_WITHIN.as_secs()),
    };
    Ok(Some(Looked { observed, unread: Some(unread) }))
}

/// True if only the workload cluster is asked for such objects when facts are confirmed.
const fn is_of_workload_cluster(kind: &TargetKind) -> bool {
    match kind {
        TargetKind::Node
        | TargetKind::Pod
        | TargetKind::ConfigMap
        | TargetKind::DaemonSet
        | TargetKind::Namespace => true,
        TargetKind::ScheduledMachine | TargetKind::ClusterApi(_) | TargetKind::Secret | TargetKind::Lease => {
            false
        }
    }
}
