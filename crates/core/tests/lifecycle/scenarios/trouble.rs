//! Errors and pauses, and the recovery from them.

use super::{at_work, failed, unusable};
use crate::simulation::{Simulation, office_hours, time};
use five_spot_api::{Phase, ScheduledMachineStatus, WorkloadCluster};
use five_spot_core::world::{
    Failures, FormerNode, NodeFact, PauseLevel, ReferenceProblem, ReferenceProblemKind, Slot, WorkloadProblem,
};

#[test]
fn a_name_that_is_taken_is_an_error_and_never_touched() {
    let mut simulation = Simulation::new(office_hours());
    simulation.world.machine = Slot::Foreign { owner: "MachineSet workers".to_owned() };
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "NameTaken"));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some(
            "Machine team/desk-machine already exists and belongs to MachineSet workers; rename the ScheduledMachine, or delete that object if nobody needs it"
        )
    );
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    simulation.world.machine = Slot::Absent;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_events(), ["ReconcileFailed", "Recovered", "MachineCreated"]);
}

#[test]
fn a_missing_cluster_or_provider_kind_is_reported() {
    let mut simulation = Simulation::new(office_hours());
    simulation.world.cluster = None;
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotFound"));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("spec.clusterName: Cluster team/prod does not exist")
    );
    simulation.world.cluster = at_work().world.cluster;
    simulation.world.references = vec![ReferenceProblem {
        field: "spec.infrastructureSpec".to_owned(),
        kind: ReferenceProblemKind::Forbidden,
        message: "may not create remotemachines".to_owned(),
    }];
    simulation.settle();
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "Forbidden"));
    assert_eq!(simulation.condition("Ready"), ("False", "Forbidden"));
    assert_eq!(simulation.take_log(), ["add the finalizer"]);
    simulation.world.references.clear();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("ReferencesValid"), ("True", "Resolved"));
}

#[test]
fn a_machine_stays_while_its_successor_cannot_be_created() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.cluster_name = "typo".to_owned());
    simulation.world.cluster = None;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotFound"));
    assert_eq!(simulation.condition("MachineReady"), ("True", "NodeReady"));
    assert_eq!(simulation.take_log(), [""; 0]);
    let mut going = simulation.clone();
    if let Slot::Ours(infrastructure) = &mut going.world.infrastructure {
        infrastructure.terminating = true;
    }
    going.settle();
    assert_eq!(
        going.take_log()[..2],
        ["cordon node desk-1", "make Cluster API skip its drain"],
        "but if it cannot stay"
    );
    simulation.world.cluster = at_work().world.cluster;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_log()[..2], ["cordon node desk-1", "make Cluster API skip its drain"]);
}

#[test]
fn a_machine_that_cannot_be_read_stays_on_record() {
    let mut simulation = at_work();
    let before = simulation.world.status.clone();
    simulation.world.machine = Slot::Unknown;
    simulation.world.node = NodeFact::NotYet;
    simulation.world.former_node = FormerNode::Cached;
    simulation.world.references = vec![ReferenceProblem {
        field: "spec.clusterName".to_owned(),
        kind: ReferenceProblemKind::Forbidden,
        message: "may not list machines".to_owned(),
    }];
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("MachineReady"), ("Unknown", "Forbidden"));
    assert_eq!(simulation.take_events(), ["ReconcileFailed"]);
    let recorded = |status: &ScheduledMachineStatus| {
        (status.machine_ref.clone(), status.node_ref.clone(), status.workload_cluster.clone())
    };
    assert_eq!(recorded(&simulation.world.status), recorded(&before));
    simulation.world.bootstrap = Slot::Absent;
    simulation.world.infrastructure = Slot::Absent;
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown, "it may be lent all the same");
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("waiting until Machine desk-machine can be read; spec.killSwitch is true")
    );
    assert!(!simulation.take_events().contains(&"MachineDeleted".to_owned()));
    simulation.world.machine = Slot::Absent;
    simulation.world.former_node = FormerNode::Gone;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Terminated);
    assert_eq!(simulation.take_events(), ["MachineDeleted"]);
}

#[test]
fn a_cluster_under_deletion_loses_its_machine_gracefully() {
    let mut simulation = at_work();
    simulation.start_pods(&["web"]);
    simulation.world.cluster.as_mut().unwrap().terminating = true;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::ShuttingDown);
    assert_eq!(simulation.condition("Ready"), ("False", "ShuttingDown"));
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotFound"));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("shutting down Machine desk-machine because its Cluster is being deleted; the schedule is open")
    );
    assert_eq!(simulation.take_log(), ["cordon node desk-1", "evict pod shop/web"]);
    simulation.advance_to("2026-11-16T10:01:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some("spec.clusterName: Cluster team/prod is being deleted")
    );
    assert_eq!(simulation.take_log(), ["make Cluster API skip its drain", "delete the Machine"]);
    simulation.world.cluster = None;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    simulation.world.cluster = at_work().world.cluster;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
}

#[test]
fn an_invalid_spec_keeps_the_machine_and_can_be_deleted() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.schedule.timezone = "Mars/Base".to_owned());
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Scheduled"), ("False", "InvalidSchedule"));
    assert_eq!(simulation.condition("Ready"), ("False", "InvalidSpec"));
    assert_eq!(simulation.condition("ReferencesValid"), ("True", "Resolved"));
    simulation.advance_to("2026-11-16T20:00:00Z");
    assert!(matches!(simulation.world.machine, Slot::Ours(_)));
    assert_eq!(simulation.take_log(), [""; 0]);
    simulation.edit(|spec| spec.cluster_name = "Not A Name".to_owned());
    simulation.settle();
    assert_eq!(simulation.condition("ReferencesValid"), ("False", "NotAllowed"));
    simulation.delete_object();
    simulation.settle();
    assert!(simulation.object_gone);
}

#[test]
fn an_invalid_spec_still_obeys_the_kill_switch() {
    let mut simulation = at_work();
    simulation.edit(|spec| spec.schedule.timezone = "Mars/Base".to_owned());
    simulation.edit(|spec| spec.kill_switch = true);
    simulation.settle();
    assert!(matches!(simulation.world.machine, Slot::Absent));
    assert_eq!(simulation.phase(), Phase::Terminated);
}

#[test]
fn a_broken_kubeconfig_fails_closed_and_recovers() {
    let cluster = at_work().world.workload.cluster().clone();
    let broken =
        unusable(cluster, WorkloadProblem::KubeconfigInvalid, "Secret prod-kubeconfig has no key value");
    let mut simulation = Simulation::new(office_hours());
    let reachable = std::mem::replace(&mut simulation.world.workload, broken.clone());
    simulation.advance_to("2026-11-16T10:00:00Z");
    assert_eq!(simulation.phase(), Phase::Error);
    assert_eq!(simulation.condition("Ready"), ("False", "KubeconfigInvalid"));
    assert_eq!(simulation.take_log(), ["add the finalizer"], "no Machine whose Node could not be reached");
    simulation.world.workload = reachable;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);

    simulation.world.workload = broken;
    let node = std::mem::replace(&mut simulation.world.node, NodeFact::Unknown);
    simulation.take_log();
    simulation.advance_to("2026-11-16T18:04:59Z");
    assert_eq!(simulation.take_log(), [""; 0], "a node that cannot be asked is not given up");
    simulation.advance_to("2026-11-16T18:30:00Z");
    assert!(matches!(simulation.world.machine, Slot::Ours(_)));
    assert_eq!(
        simulation.world.status.message.as_deref(),
        Some(
            "drain deadline 2026-11-16T18:05:00Z passed: the node cannot be drained: Secret prod-kubeconfig has no key value; \
             retrying"
        )
    );
    simulation.world.workload = at_work().world.workload;
    simulation.world.node = node;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
}

#[test]
fn an_unreachable_cluster_does_not_fail_the_join() {
    // As after a restore: the Machine is there, and status knows nothing of it.
    let mut simulation = at_work();
    simulation.world.status = ScheduledMachineStatus::default();
    let guess = WorkloadCluster::of_secret("guess", "value");
    let broken = unusable(guess, WorkloadProblem::SecretForbidden, "Secrets cannot be read");
    let reachable = std::mem::replace(&mut simulation.world.workload, broken);
    let node = std::mem::replace(&mut simulation.world.node, NodeFact::Unknown);
    simulation.take_log();
    simulation.advance_to("2026-11-16T11:00:00Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.condition("Ready"), ("False", "Forbidden"));
    assert_eq!(simulation.world.status.workload_cluster, None);
    simulation.world.workload = reachable.clone();
    simulation.world.node = NodeFact::NotYet;
    simulation.advance_to("2026-11-16T11:19:59Z");
    assert_eq!(simulation.take_log(), [""; 0], "its time to join begins when it can be seen");
    assert_eq!(simulation.world.status.workload_cluster.as_ref(), Some(reachable.cluster()));
    simulation.world.node = node;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.condition("Ready").0, "True");
}

#[test]
fn transient_failures_keep_the_phase_until_the_fifth() {
    let mut simulation = at_work();
    simulation.world.failures = failed(4, false, false);
    let decision = simulation.decide();
    assert_eq!(decision.status.phase, Some(Phase::Active));
    assert_eq!(decision.wake_at, Some(time("2026-11-16T10:00:30Z")));
    simulation.settle();
    assert_eq!(simulation.condition("Ready"), ("False", "ReconcileFailed"));
    simulation.world.failures = failed(5, false, false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error);
    simulation.world.failures = Failures::default();
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Active);
    assert_eq!(simulation.take_events(), ["ReconcileFailed", "Recovered"]);
    simulation.world.failures = failed(1, true, false);
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Error, "a refusal needs someone at once");
}

#[test]
fn a_pause_holds_actions_back_and_lists_them() {
    let mut simulation = at_work();
    simulation.world.cluster.as_mut().unwrap().paused = true;
    simulation.advance_to("2026-11-16T18:01:00Z");
    assert_eq!(simulation.take_log(), [""; 0]);
    assert_eq!(simulation.take_events(), [""; 0]);
    assert_eq!(simulation.condition("Paused"), ("True", "ClusterPaused"));
    assert_eq!(simulation.condition("Ready"), ("False", "Paused"));
    assert_eq!(simulation.condition("Scheduled"), ("False", "OutsideWindow"));
    assert_eq!(simulation.world.status.shutdown_started_at, None, "no clock runs meanwhile");
    let message = &simulation.world.status.conditions.iter().find(|c| c.type_ == "Paused").unwrap().message;
    assert_eq!(message, "paused by spec.paused of Cluster team/prod; held back: cordon node desk-1");
    simulation.now = time("2026-11-16T19:00:00Z");
    simulation.world.cluster.as_mut().unwrap().paused = false;
    simulation.settle();
    assert_eq!(simulation.phase(), Phase::Inactive);
    assert_eq!(
        simulation.take_events(),
        ["ScheduleInactive", "GracePeriodActive", "NodeDraining", "NodeDrained", "MachineDeleted"]
    );
    assert_eq!(simulation.condition("Paused"), ("False", "NotPaused"));
}

#[test]
fn only_pause_all_holds_back_the_kill_switch() {
    type Pause = fn(&mut Simulation);
    let pauses: [(Pause, &str, bool); 6] = [
        (|s| s.world.cluster.as_mut().unwrap().paused = true, "ClusterPaused", false),
        (|s| s.world.object.capi_paused = true, "CapiAnnotation", false),
        (|s| s.machine().capi_paused = true, "CapiAnnotation", false),
        (|s| s.world.object.paused = Some(PauseLevel::Ordinary), "ObjectAnnotation", false),
        (|s| s.world.namespace_pause = Some(PauseLevel::Ordinary), "NamespaceAnnotation", false),
        (|s| s.world.namespace_pause = Some(PauseLevel::All), "NamespaceAnnotation", true),
    ];
    for (pause, reason, holds_kill_switch) in pauses {
        let mut simulation = at_work();
        pause(&mut simulation);
        simulation.edit(|spec| spec.schedule.enabled = false);
        simulation.settle();
        assert_eq!(simulation.condition("Paused"), ("True", reason));
        assert_eq!(simulation.take_log(), [""; 0], "{reason}");
        simulation.edit(|spec| spec.kill_switch = true);
        simulation.settle();
        assert_eq!(simulation.take_log().is_empty(), holds_kill_switch, "{reason}");
    }
}
