//! Links to workload clusters: opened when an object needs one, and opened anew when its kubeconfig changes.

use crate::cache::caches::Caches;
use crate::cache::change_cause::ChangeCause;
use crate::cache::lock::lock;
use crate::cache::references::WorkloadKey;
use crate::cache::watch::WatchSource;
use crate::cache::workload::{MadeFrom, NotifyNode, NotifySyncState, WorkloadLink};
use crate::transport::credential;
use crate::transport::kubeconfig::{self, SecretFacts};
use std::sync::Arc;

/// The link to a cluster, opened anew if its kubeconfig has changed. The error is a message for people.
pub(crate) async fn link(
    caches: &Arc<Caches>,
    key: &WorkloadKey,
    secret: Option<&SecretFacts>,
) -> Result<Arc<WorkloadLink>, String> {
    if let Some(link) = lock(&caches.links).get(key)
        && link.made_from.secret.as_ref() == secret
    {
        return Ok(link.clone());
    }
    let (client, credential) = match (key, secret) {
        (WorkloadKey::Kubeconfig { secret: name, key }, Some(facts)) => {
            let kubeconfig = kubeconfig::read(facts, key)
                .map_err(|problem| format!("the kubeconfig in Secret {name} {problem}"))?;
            let expiries = caches.connection.credential_expiries();
            let credential = credential::expiry(&kubeconfig).map(|at| expiries.note(&name.to_string(), at));
            let client = caches
                .connection
                .workload_of(name, kubeconfig)
                .await
                .map_err(|error| format!("the kubeconfig in Secret {name} cannot be used: {error}"))?;
            (client, credential)
        }
        (WorkloadKey::Kubeconfig { .. } | WorkloadKey::Management, _) => (caches.client.clone(), None),
    };
    let source = match key {
        WorkloadKey::Management => caches.source.clone(),
        WorkloadKey::Kubeconfig { secret, .. } => WatchSource::workload(&secret.to_string()),
    };
    let link = WorkloadLink::open(
        client,
        source,
        MadeFrom { secret: secret.cloned(), _credential: credential },
        &caches.stop,
        caches.is_watched.then(|| (notify_node(caches, key), notify_users(caches, key))),
    );
    lock(&caches.links).insert(key.clone(), link.clone());
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
