//! One look at one object, with a plain connection and without watches.

use crate::cache::caches::ClusterSettings;
use crate::cache::read_once::read_once;
use crate::cache::start::unwatched;
use crate::transport::connection::Connection;
use crate::transport::error::CallError;
use crate::transport::key::ObjectKey;
use crate::view::assemble::{Cached, assemble};
use crate::view::confirm::{Confirmed, Scope, confirm};
use crate::view::pod_watch::watch_pods;
use five_spot_core::world::Failures;

/// The reason for which an object could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// There is no client of the management cluster.
    #[error("failed to make a client of the management cluster: {0}")]
    Client(#[from] kube::Error),
    /// The management cluster could not be read.
    #[error("{0}")]
    Read(#[from] CallError),
}

/// Looks at one object: reads it, and everything that a decision about it depends on, from the API servers. Returns `None`
/// if there is no such object.
///
/// The world is assembled by the code that a controller uses, so that [`Observed::decide`] gives the decision that a
/// controller would make at this moment. Only what a controller remembers of its own attempts (failures, refused
/// evictions) is not known here. Nothing is written, and no watch is opened.
///
/// [`Observed::decide`]: crate::view::observed::Observed::decide
pub async fn look(
    connection: &Connection,
    key: &ObjectKey,
    settings: &ClusterSettings,
) -> Result<Option<Confirmed>, LookError> {
    let caches = unwatched(connection.clone(), settings.clone())?;
    if !read_once(&caches, key).await? {
        return Ok(None);
    }
    let failures = Failures::default();
    let Cached::Known(observed) = assemble(&caches, key, &failures).await else { return Ok(None) };
    watch_pods(&caches, key, &observed, observed.decide(caches.now()).watch_pods);
    let Some(confirmed) = confirm(&caches, key, &observed, Scope::Everything, &failures).await? else {
        return Ok(None);
    };
    let needs_pods = confirmed.observed().decide(caches.now()).watch_pods;
    let has_pods = confirmed.observed().world.node.found().is_none_or(|node| node.pods.is_some());
    if !needs_pods || has_pods {
        return Ok(Some(confirmed));
    }
    watch_pods(&caches, key, confirmed.observed(), true);
    Ok(confirm(&caches, key, confirmed.observed(), Scope::Everything, &failures).await?)
}
