//! Links to workload clusters: opened when an object needs one, and opened again when its kubeconfig changes.

use crate::cache::caches::Caches;
use crate::cache::change_cause::ChangeCause;
use crate::cache::link_limit::{self, TooManyClusters};
use crate::cache::lock::lock;
use crate::cache::references::WorkloadKey;
use crate::cache::watch::WatchSource;
use crate::cache::workload::{MadeFrom, NotifyNode, NotifySyncState, WorkloadLink};
use crate::transport::credential;
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::{self, SecretFacts};
use std::sync::Arc;

/// The error of a link that cannot be opened. The messages are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig in Secret {secret} {problem}")]
    Kubeconfig {
        /// The Secret.
        secret: ObjectKey,
        /// The rest of the sentence.
        problem: String,
    },
    /// The namespace has as many links as it may have.
    #[error(transparent)]
    TooManyClusters(#[from] TooManyClusters),
}

/// The link to a cluster, opened again if its kubeconfig has changed.
pub(crate) async fn link(
    caches: &Arc<Caches>,
    key: &WorkloadKey,
    secret: Option<&SecretFacts>,
) -> Result<Arc<WorkloadLink>, LinkError> {
    if let Some(link) = lock(&caches.links).get(key)
        && link.made_from.secret.as_ref() == secret
    {
        return Ok(link.clone());
    }
    // Before anything is made for it, and again when it is there: others are opened meanwhile.
    link_limit::check(caches, key)?;
    let (client, credential) = match key {
        WorkloadKey::Kubeconfig { secret: name, key } => {
            let failure = |problem| LinkError::Kubeconfig { secret: name.clone(), problem };
            let facts = secret.ok_or_else(|| failure("has not been read".to_owned()))?;
            let kubeconfig = kubeconfig::read(facts, key).map_err(failure)?;
            let expiries = caches.connection.credential_expiries();
            let credential = credential::expiry(&kubeconfig).map(|at| expiries.note(&name.to_string(), at));
            let client = caches
                .connection
                .workload_of(name, kubeconfig)
                .await
                .map_err(|error| failure(format!("cannot be used: {error}")))?;
            (client, credential)
        }
        WorkloadKey::Management => (caches.client.clone(), None),
    };
    let (source, budget) = match key {
        WorkloadKey::Management => (caches.source.clone(), None),
        WorkloadKey::Kubeconfig { secret, .. } => {
            let share = caches.connection.namespace_share(secret);
            let source = WatchSource::workload(&secret.to_string(), share.warnings());
            (source.with_refused_evictions(share.refused_evictions()), Some(share.kept_budget()))
        }
    };
    let link = WorkloadLink::open(
        client,
        source,
        MadeFrom { secret: secret.cloned(), _credential: credential },
        budget,
        &caches.stop,
        caches.is_watched.then(|| (notify_node(caches, key), notify_users(caches, key))),
    );
    link_limit::insert(caches, key, &link)?;
    Ok(link)
}

/// A callback that reports a change of a Node in this cluster to the objects that have the Node.
pub(crate) fn notify_node(caches: &Arc<Caches>, cluster: &WorkloadKey) -> NotifyNode {
    let (caches, cluster) = (Arc::downgrade(caches), cluster.clone());
    Arc::new(move |node, cause| {
        let Some(caches) = caches.upgrade() else { return };
        for key in caches.node_index.objects(&cluster, node) {
            caches.notify(key, cause);
        }
    })
}

/// A callback that reports a change of the watch status to the objects whose Nodes may be in this cluster.
fn notify_users(caches: &Arc<Caches>, cluster: &WorkloadKey) -> NotifySyncState {
    let (caches, cluster) = (Arc::downgrade(caches), cluster.clone());
    Arc::new(move || {
        if let Some(caches) = caches.upgrade() {
            caches.notify_where(ChangeCause::Watch, |key, object| caches.may_use(key, object, &cluster));
        }
    })
}
