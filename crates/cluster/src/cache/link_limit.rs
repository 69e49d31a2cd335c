//! The number of workload clusters that one namespace may be linked to.
//!
//! A tenant can name any number of Secrets, and each link costs memory, connections and tasks. The clusters of lent machines
//! come first: a machine that is lent keeps its link, or gets it after a restart, whatever else the tenant adds. No machine
//! is lent without a link, so that they never exceed the limit by themselves.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::change_cause::ChangeCause;
use crate::cache::lock::lock;
use crate::cache::references::{WorkloadKey, spec_workload, workload_of};
use crate::cache::workload::WorkloadLink;
use crate::transport::http::NAMESPACE_CLUSTERS;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The error of a link that is one too many for its namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ScheduledMachines of namespace {namespace} name more than {} workload clusters, and the controller connects to no \
     more for one namespace; delete those that are not needed, or use another namespace for some clusters",
    NAMESPACE_CLUSTERS
)]
pub(crate) struct TooManyClusters {
    /// The namespace.
    pub(crate) namespace: Arc<str>,
}

/// Checks that there is room for a link, before anything is made for it.
pub(super) fn check(caches: &Caches, cluster: &WorkloadKey) -> Result<(), TooManyClusters> {
    let lent = lent_clusters(caches, cluster);
    let refusal = refusal(&lock(&caches.links), &lent, cluster);
    note_refusal(caches, refusal)
}

/// Adds a link, in place of one to the same cluster if there is one.
pub(super) fn insert(
    caches: &Caches,
    cluster: &WorkloadKey,
    link: &Arc<WorkloadLink>,
) -> Result<(), TooManyClusters> {
    let lent = lent_clusters(caches, cluster);
    let mut links = lock(&caches.links);
    let refusal = refusal(&links, &lent, cluster);
    if refusal.is_none() {
        links.insert(cluster.clone(), link.clone());
    }
    drop(links);
    note_refusal(caches, refusal)
}

/// Reports that links have been closed to the objects of their namespaces that may have waited for one.
pub(super) fn notify_closed(caches: &Caches, closed: &[WorkloadKey]) {
    for namespace in closed.iter().filter_map(namespace_of).collect::<BTreeSet<_>>() {
        if !lock(&caches.refused_links).remove(namespace) {
            continue;
        }
        let open: BTreeSet<WorkloadKey> = lock(&caches.links).keys().cloned().collect();
        caches.notify_where(ChangeCause::Watch, |key, object| {
            key.namespace == *namespace
                && spec_workload(key, object).is_some_and(|cluster| !open.contains(&cluster))
        });
    }
}

fn note_refusal(caches: &Caches, refusal: Option<TooManyClusters>) -> Result<(), TooManyClusters> {
    let Some(refusal) = refusal else { return Ok(()) };
    lock(&caches.refused_links).insert(refusal.namespace.clone());
    Err(refusal)
}

/// The refusal of a link to a cluster, if its namespace has no room for it.
fn refusal<L>(
    open: &BTreeMap<WorkloadKey, L>,
    lent: &BTreeSet<WorkloadKey>,
    cluster: &WorkloadKey,
) -> Option<TooManyClusters> {
    let namespace = namespace_of(cluster)?;
    if open.contains_key(cluster) || lent.contains(cluster) {
        return None;
    }
    let others = open.keys().filter(|other| namespace_of(other) == Some(namespace) && !lent.contains(*other));
    let is_full = lent.len() + others.count() >= NAMESPACE_CLUSTERS;
    is_full.then(|| TooManyClusters { namespace: namespace.clone() })
}

/// The clusters of the machines that are lent in the namespace of a cluster, and of Nodes that have outlived them.
fn lent_clusters(caches: &Caches, cluster: &WorkloadKey) -> BTreeSet<WorkloadKey> {
    let Some(namespace) = namespace_of(cluster) else { return BTreeSet::new() };
    let of_namespace = caches.objects.select(|key, object| {
        let has_node = object.record.node.is_some();
        (key.namespace == *namespace).then(|| (key.clone(), has_node, workload_of(key, object)))
    });
    let lent = of_namespace
        .into_iter()
        .filter(|(key, has_node, _)| *has_node || caches.machines.has(&machine_key(key)))
        .map(|(_, _, cluster)| cluster);
    lent.filter(|cluster| namespace_of(cluster).is_some()).collect()
}

/// The namespace of a cluster; `None` for the management cluster, which is not limited.
fn namespace_of(cluster: &WorkloadKey) -> Option<&Arc<str>> {
    match cluster {
        WorkloadKey::Management => None,
        WorkloadKey::Kubeconfig { secret, .. } => Some(&secret.namespace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::key::ObjectKey;

    fn cluster(namespace: &str, number: usize) -> WorkloadKey {
        let secret = ObjectKey::new(namespace, format!("secret-{number:03}"));
        WorkloadKey::Kubeconfig { secret, key: "value".to_owned() }
    }

    fn clusters(numbers: std::ops::Range<usize>) -> BTreeMap<WorkloadKey, usize> {
        numbers.map(|number| (cluster("a", number), number)).collect()
    }

    #[test]
    fn a_namespace_has_so_many_links_and_no_more() {
        let (open, none) = (clusters(0..NAMESPACE_CLUSTERS - 1), BTreeSet::new());
        assert_eq!(refusal(&open, &none, &cluster("a", 500)), None);
        let open = clusters(0..NAMESPACE_CLUSTERS);
        let refused = refusal(&open, &none, &cluster("a", 500)).expect("a refusal");
        assert!(
            refused.to_string().contains("namespace a name more than 100 workload clusters"),
            "{refused}"
        );
        assert_eq!(refusal(&open, &none, &cluster("a", 3)), None, "a changed kubeconfig takes the old place");
        assert_eq!(refusal(&open, &none, &cluster("b", 500)), None, "others are not affected");
        assert_eq!(refusal(&open, &none, &WorkloadKey::Management), None);
    }

    #[test]
    fn the_clusters_of_lent_machines_come_first() {
        let lent: BTreeSet<WorkloadKey> = (200..210).map(|number| cluster("a", number)).collect();
        let open = clusters(0..NAMESPACE_CLUSTERS - 10);
        assert!(refusal(&open, &lent, &cluster("a", 500)).is_some(), "the rest is reserved");
        for cluster in &lent {
            assert_eq!(refusal(&clusters(0..NAMESPACE_CLUSTERS), &lent, cluster), None);
        }
        let open = clusters(0..NAMESPACE_CLUSTERS - 11);
        assert_eq!(refusal(&open, &lent, &cluster("a", 500)), None);
    }
}
