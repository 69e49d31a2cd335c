//! Whether the clusters that a failed object depends upon answer again.

use crate::cache::fleet::{Fleet, Inner};
use crate::cache::workload::WorkloadKey;
use crate::transport::key::ObjectKey;
use crate::view::observe::workload_of;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::timeout;

/// How long a cluster may take to say its version. One that hangs must not keep the others waiting.
const ANSWER: Duration = Duration::from_secs(5);

impl Fleet {
    /// Whether an object waits because a cluster did not do what it was asked, and not because it refused.
    pub fn waits_for_cluster(&self, key: &ObjectKey) -> bool {
        let last = self.inner.recall(key, |memory| memory.failures.last.clone()).flatten();
        last.is_some_and(|last| !last.refused)
    }

    /// Those of these objects whose clusters answer at this moment.
    pub async fn reachable(&self, keys: &BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let inner = &self.inner;
        if !answers(&inner.client).await {
            return BTreeSet::new();
        }
        let mut dependents: BTreeMap<WorkloadKey, Vec<ObjectKey>> = BTreeMap::new();
        for key in keys {
            let object = inner.objects.view(key);
            let workload = object.map_or(WorkloadKey::Management, |object| workload_of(key, &object));
            dependents.entry(workload).or_default().push(key.clone());
        }
        let asked = dependents.into_iter().map(|(workload, keys)| async move {
            if inner.workload_answers(&workload).await { keys } else { Vec::new() }
        });
        futures::future::join_all(asked).await.into_iter().flatten().collect()
    }
}

impl Inner {
    /// The management cluster has been asked already; one that is not open will be told of when it is.
    async fn workload_answers(&self, workload: &WorkloadKey) -> bool {
        let link = self.open_link(workload).filter(|_| *workload != WorkloadKey::Management);
        match link {
            Some(link) => answers(&link.client).await,
            None => true,
        }
    }
}

async fn answers(client: &Client) -> bool {
    timeout(ANSWER, client.apiserver_version()).await.is_ok_and(|answer| answer.is_ok())
}
