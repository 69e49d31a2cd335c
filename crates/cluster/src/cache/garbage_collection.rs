//! Garbage collection: watches, links and index entries that no object needs any more are removed a while after a
//! change. One pass over everything for each of ten thousand deleted objects would take longer than the deletions.

use crate::cache::caches::Caches;
use crate::cache::claim_watch;
use crate::cache::link_limit;
use crate::cache::lock::lock;
use crate::cache::references::{WorkloadKey, references, secret_keys};
use crate::transport::key::ObjectKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The time between a change and the collection that it causes.
const COLLECT_AFTER: Duration = Duration::from_secs(10);

/// Collects garbage after changes, for as long as the caches are watched.
pub(super) fn start(caches: &Arc<Caches>) {
    let collected = caches.clone();
    caches.spawn(async move {
        loop {
            collected.maybe_unused.notified().await;
            tokio::time::sleep(COLLECT_AFTER).await;
            close_unused(&collected);
            collected.node_index.retain(|cluster, node, key| collected.is_indexed(cluster, node, key));
            collected.claims.collect_garbage(|key| claim_watch::machine_of(&collected, key));
        }
    });
}

/// Closes the watches and links that no object needs any more.
fn close_unused(caches: &Caches) {
    let mut kinds = BTreeSet::new();
    let mut secrets = BTreeSet::new();
    let mut clusters = BTreeSet::new();
    let mut is_empty = true;
    let mut with_agents = BTreeSet::new();
    // One after the other: what all objects refer to, taken together, is far more than the few things that they refer to.
    caches.objects.select(|key, object| {
        is_empty = false;
        let needed = references(key, object);
        kinds.extend(needed.kinds);
        secrets.extend(needed.secrets);
        let named = secret_keys(key, object).into_iter();
        clusters.extend(named.map(|(secret, key)| WorkloadKey::Kubeconfig { secret, key }));
        if object.spec.as_ref().is_ok_and(|spec| !spec.kill_if_commands.is_empty()) {
            with_agents.extend(caches.clusters_of(key, object));
        }
        None::<()>
    });
    lock(&caches.providers).retain(|kind, _| kinds.contains(kind));
    let is_named = |secret: &ObjectKey, key: &str| {
        clusters.contains(&WorkloadKey::Kubeconfig { secret: secret.clone(), key: key.to_owned() })
    };
    lock(&caches.secrets)
        .retain(|_, namespace| namespace.retain(|secret| secrets.contains(secret), is_named));
    let mut closed = Vec::new();
    lock(&caches.links).retain(|key, _| {
        let is_needed = match key {
            WorkloadKey::Management => !is_empty,
            WorkloadKey::Kubeconfig { .. } => clusters.contains(key),
        };
        if !is_needed {
            closed.push(key.clone());
        }
        is_needed
    });
    link_limit::notify_closed(caches, &closed);
    for (key, link) in lock(&caches.links).iter() {
        if !with_agents.contains(key) {
            link.forget_agent_pods();
        }
    }
}
