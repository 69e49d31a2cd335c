//! 5-Spot as a platform team installs it: every overlay by `kubectl apply -k`, the Helm chart, Pod Security, and the controller
//! and the agent as pods of the images that `cargo xtask image` builds, on real nodes.

mod alerts;
mod chart;
mod dns;
mod helm;
mod kubectl;
mod lease_watch;
mod management_nodes;
mod object_sets;
mod overlays;
mod pod_shapes;
mod pods;
mod quick_start;
mod refusals;
mod running;

use five_spot_testenv::harness::Test;
use five_spot_testenv::node;

pub(crate) use kubectl::Kubectl;
pub(crate) use pod_shapes::{pod_of, until_in_force};
pub(crate) use pods::archive;

pub(crate) fn tests() -> Vec<Test> {
    let running = if node::is_left_out() { Vec::new() } else { running::tests() };
    [
        running,
        quick_start::tests(),
        management_nodes::tests(),
        overlays::tests(),
        chart::tests(),
        refusals::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
