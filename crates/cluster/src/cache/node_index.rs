//! The index from a Node to the objects that have it, or had it. A Node is known by its cluster and its name: Nodes of
//! the same name in two clusters are two Nodes.

use crate::cache::lock::lock;
use crate::cache::references::WorkloadKey;
use crate::transport::key::ObjectKey;
use five_spot_core::world::NodeName;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Objects by Node. The cluster comes first, so that its key is kept once for all of its Nodes.
#[derive(Debug, Default)]
pub(crate) struct NodeIndex {
    clusters: Mutex<BTreeMap<WorkloadKey, BTreeMap<NodeName, Vec<ObjectKey>>>>,
}

impl NodeIndex {
    /// Adds an object to a Node of a cluster.
    pub(crate) fn insert(&self, cluster: &WorkloadKey, node: &NodeName, object: &ObjectKey) {
        let mut clusters = lock(&self.clusters);
        if !clusters.contains_key(cluster) {
            clusters.insert(cluster.clone(), BTreeMap::new());
        }
        let Some(nodes) = clusters.get_mut(cluster) else { return };
        let objects = nodes.entry(node.clone()).or_default();
        if !objects.contains(object) {
            // Nearly always one, and room for no more.
            objects.reserve_exact(1);
            objects.push(object.clone());
        }
    }

    /// The objects of a Node.
    pub(crate) fn objects(&self, cluster: &WorkloadKey, node: &NodeName) -> Vec<ObjectKey> {
        lock(&self.clusters).get(cluster).and_then(|nodes| nodes.get(node)).cloned().unwrap_or_default()
    }

    /// Removes the entries for which `is_current` is false.
    pub(crate) fn retain(&self, is_current: impl Fn(&WorkloadKey, &NodeName, &ObjectKey) -> bool) {
        lock(&self.clusters).retain(|cluster, nodes| {
            nodes.retain(|node, objects| {
                objects.retain(|object| is_current(cluster, node, object));
                !objects.is_empty()
            });
            !nodes.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> WorkloadKey {
        WorkloadKey::Kubeconfig { secret: ObjectKey::new("a", name), key: "value".to_owned() }
    }

    #[test]
    fn nodes_of_one_name_in_two_clusters_are_apart() {
        let (index, node) = (NodeIndex::default(), NodeName::from("n"));
        let (one, other) = (ObjectKey::new("a", "one"), ObjectKey::new("a", "other"));
        index.insert(&cluster("east"), &node, &one);
        index.insert(&cluster("east"), &node, &one);
        index.insert(&cluster("west"), &node, &other);
        assert_eq!(index.objects(&cluster("east"), &node), [one]);
        assert_eq!(index.objects(&cluster("west"), &node), [other]);
        assert_eq!(index.objects(&WorkloadKey::Management, &node), []);
    }

    #[test]
    fn entries_that_are_not_current_are_removed() {
        let (index, node) = (NodeIndex::default(), NodeName::from("n"));
        let (one, other) = (ObjectKey::new("a", "one"), ObjectKey::new("a", "other"));
        index.insert(&cluster("east"), &node, &one);
        index.insert(&cluster("east"), &node, &other);
        index.retain(|_, _, object| *object == other);
        assert_eq!(index.objects(&cluster("east"), &node), [other]);
        index.retain(|_, _, _| false);
        assert!(lock(&index.clusters).is_empty());
    }
}
