//! Probes of clusters that did not answer: an object that waits for a cluster is reconciled when it answers again.

use crate::cache::caches::Caches;
use crate::cache::references::{WorkloadKey, workload_of};
use crate::transport::key::ObjectKey;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::timeout;

/// The time that a cluster has to answer with its version. One that hangs must not delay the others.
const ANSWER: Duration = Duration::from_secs(5);

/// The objects among `keys` whose clusters answer at this moment.
pub async fn reachable(caches: &Caches, keys: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
    if !answers(&caches.client).await {
        return BTreeSet::new();
    }
    let mut dependents: BTreeMap<WorkloadKey, Vec<ObjectKey>> = BTreeMap::new();
    for key in keys {
        let object = caches.objects.view(key);
        let workload = object.map_or(WorkloadKey::Management, |object| workload_of(key, &object));
        dependents.entry(workload).or_default().push(key.clone());
    }
    let asked = dependents.into_iter().map(|(workload, keys)| async move {
        if workload_answers(caches, &workload).await { keys } else { Vec::new() }
    });
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

/// The management cluster has answered already; a link that is not open reports when it is.
async fn workload_answers(caches: &Caches, workload: &WorkloadKey) -> bool {
    let link = caches.open_link(workload).filter(|_| *workload != WorkloadKey::Management);
    match link {
        Some(link) => answers(&link.client).await,
        None => true,
    }
}

async fn answers(client: &Client) -> bool {
    timeout(ANSWER, client.apiserver_version()).await.is_ok_and(|answer| answer.is_ok())
}
