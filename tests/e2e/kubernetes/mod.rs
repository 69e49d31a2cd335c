//! Kubernetes itself: Nodes, Events, evictions and CEL as v1.36 has them.

use five_spot_testenv::harness::Test;

pub(crate) fn tests() -> Vec<Test> {
    Vec::new()
}
