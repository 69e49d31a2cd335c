//! The holders of the Lease over time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Cluster;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::watcher::watch_object;

/// The polling interval for the record.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Records every change of the holder.
pub(super) struct LeaseWatch {
    holders: Arc<Mutex<Vec<(Instant, String)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl LeaseWatch {
    pub(super) fn start(cluster: &Cluster) -> Self {
        let leases: Api<Lease> = Api::namespaced(cluster.admin(), SYSTEM_NAMESPACE);
        let holders = Arc::new(Mutex::new(Vec::<(Instant, String)>::new()));
        let sink = Arc::clone(&holders);
        let task = tokio::spawn(async move {
            let mut states = watch_object(leases, "5spot-leader").boxed();
            while let Some(state) = states.next().await {
                let Ok(Some(lease)) = state else { continue };
                let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
                let mut holders = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if holders.last().is_none_or(|(_, last)| *last != holder) {
                    holders.push((Instant::now(), holder));
                }
            }
        });
        Self { holders, task }
    }

    /// The time from each release to the next acquisition. A takeover without a release counts as `None`.
    pub(super) fn gaps(&self) -> Vec<Option<Duration>> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = holders.windows(2).filter(|pair| !pair[1].1.is_empty());
        changes.map(|pair| pair[0].1.is_empty().then(|| pair[1].0 - pair[0].0)).collect()
    }

    /// Waits until there have been more than so many acquisitions.
    pub(super) async fn until_more_than(&self, acquisitions: usize) {
        while self.gaps().len() <= acquisitions {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The pod that holds the Lease.
    pub(super) fn holder(&self) -> Option<String> {
        let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, last) = holders.last()?;
        Some(last.rsplit_once('_')?.0.to_owned())
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}
