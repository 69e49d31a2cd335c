//! The start of the caches, with their watches or without.

use crate::cache::caches::{Caches, ClusterSettings};
use crate::cache::changes::{ChangeSender, change_channel};
use crate::cache::{garbage_collection, watches};
use crate::transport::connection::Connection;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Opens the watches. Every object that has to be reconciled is sent to `changes`, with the cause.
pub fn start(
    connection: Connection,
    settings: ClusterSettings,
    changes: ChangeSender,
    stop: &CancellationToken,
) -> Result<Arc<Caches>, kube::Error> {
    let caches = Arc::new(Caches::new(connection, settings, changes, true, stop)?);
    watches::start(&caches);
    garbage_collection::start(&caches);
    Ok(caches)
}

/// Caches without watches, which single reads fill.
pub(crate) fn unwatched(
    connection: Connection,
    settings: ClusterSettings,
) -> Result<Arc<Caches>, kube::Error> {
    let (changes, _) = change_channel();
    let caches = Caches::new(connection, settings, changes, false, &CancellationToken::new())?;
    Ok(Arc::new(caches))
}
