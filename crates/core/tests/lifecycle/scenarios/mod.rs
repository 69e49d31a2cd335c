//! Scenarios of the lifecycle, one for each test.

mod brake;
mod clock;
mod combinations;
mod deletion;
mod down;
mod emergency;
mod lost_node;
mod node;
mod pause;
mod reclaim;
mod reclaim_stages;
mod trouble;
mod up;

use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::{NodeTaint, TaintEffect, WorkloadCluster};
use five_spot_core::world::{Failure, Failures, Workload, WorkloadProblem};

fn at_work() -> Simulation {
    let mut simulation = Simulation::new(office_hours());
    simulation.advance_to("2026-11-16T10:00:00Z");
    simulation.take_log();
    simulation.take_events();
    simulation
}

fn unusable(cluster: WorkloadCluster, problem: WorkloadProblem, message: &str) -> Workload {
    Workload::Unusable { cluster, problem, message: message.to_owned() }
}

fn with_taints(taints: &[(&str, &str)]) -> Vec<NodeTaint> {
    let taint = |(key, value): &(&str, &str)| NodeTaint {
        key: (*key).to_owned(),
        value: Some((*value).to_owned()),
        effect: TaintEffect::NoSchedule,
    };
    taints.iter().map(taint).collect()
}

fn failed(count: u32, refused: bool, taints: bool) -> Failures {
    let retry_at = time("2026-11-16T10:00:30Z");
    Failures {
        count,
        last: Some(Failure { message: "CAPI operation failed: no".to_owned(), refused, taints, retry_at }),
    }
}
