//! The watch of the pods of a node, which is open only while the node is drained.

use crate::cache::caches::Caches;
use crate::cache::links::notify_node;
use crate::cache::references::workload_of;
use crate::transport::key::ObjectKey;
use crate::view::observed::Observed;
use std::sync::Arc;

/// Opens the watch of the pods of an object's Node, or closes it.
pub fn watch_pods(caches: &Arc<Caches>, key: &ObjectKey, observed: &Observed, wanted: bool) {
    let (Some(link), Some(node)) = (&observed.link, observed.world.node.found()) else { return };
    if wanted {
        let Some(object) = caches.objects.view(key) else { return };
        link.watch_pods(&node.name, key, &notify_node(caches, &workload_of(key, &object)));
    } else {
        link.forget_pods(&node.name, key);
        caches.memories.update(key, |memory| {
            memory.drain_rules = None;
            memory.evictions.clear();
            memory.left.clear();
        });
    }
}
