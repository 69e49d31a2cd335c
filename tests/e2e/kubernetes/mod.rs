//! Kubernetes itself: Nodes, Events, evictions and CEL in the tested version.

mod cel;
mod events;
mod evictions;
mod kwok_node;
mod nodes;

use five_spot_testenv::harness::Test;

pub(crate) use kwok_node::ready_node;

pub(crate) fn tests() -> Vec<Test> {
    [nodes::tests(), events::tests(), evictions::tests(), cel::tests()].into_iter().flatten().collect()
}
