//! The reclaim agent on a real node: the shipped DaemonSet's own pod under a real kubelet, events of the real kernel,
//! real programs, and every step up to the disabled schedule.

mod agent_pod;
mod desk;
mod diagnoses;
mod doctor;
mod isolated;
mod owner;
mod reclaim;

use five_spot_testenv::harness::Test;
use five_spot_testenv::node;

pub(crate) use desk::Desk;
pub(crate) use owner::{OwnersProgram, processes_called};

pub(crate) fn tests() -> Vec<Test> {
    if node::is_left_out() {
        eprintln!("{} is set: the tests that need a real node are left out", node::WITHOUT_NODE_VARIABLE);
        return Vec::new();
    }
    [reclaim::tests(), diagnoses::tests(), isolated::tests()].into_iter().flatten().collect()
}
