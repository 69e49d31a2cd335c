//! Faults of a machine, as the controller and Cluster API record them.

use super::{AN_HOUR_AGO, Case, DESK, MACHINE, NODE, Step, condition};
use crate::doctor::tests::fixture::machine;
use five_spot_diagnose::doctor::{FindingId, Severity};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn all() -> Vec<Case> {
    [schedules(), references(), nodes(), reclaims(), removals()].into_iter().flatten().collect()
}

/// The machine of Cluster API is gone.
fn released() -> [Step; 2] {
    [Step::Merge(MACHINE, json!({"metadata": {"finalizers": null}})), Step::Delete(MACHINE)]
}

/// No machine is wanted, and none is there.
fn idle(reason: &str) -> Vec<Step> {
    let gone = json!({"phase": "Inactive", "nodeRef": null, "machineRef": null, "workloadCluster": null});
    let conditions = vec![
        condition("Ready", "True", "Inactive", "no machine is lent"),
        condition("MachineReady", "False", "NoMachine", "Machine desk-machine does not exist"),
        condition("Scheduled", "False", reason, "not wanted"),
    ];
    released().into_iter().chain([Step::Status(DESK, gone), Step::Conditions(DESK, conditions)]).collect()
}

fn failing(reason: &str, message: &str) -> Vec<Step> {
    let ready = condition("Ready", "False", reason, message);
    vec![Step::Status(DESK, json!({"phase": "Error"})), Step::Conditions(DESK, vec![ready])]
}

fn paused(reason: &str, message: &str) -> Vec<Step> {
    vec![Step::Conditions(DESK, vec![condition("Paused", "True", reason, message)])]
}

fn schedules() -> Vec<Case> {
    let message = "spec.schedule.timezone: found Mars/Olympus";
    let held = "paused by annotation 5spot.finos.org/paused on ScheduledMachine shop/desk; held back: delete the Machine";
    vec![
        Case::new(FindingId::ScheduleNotNow, Severity::Info, idle("OutsideWindow")),
        Case::new(FindingId::ScheduleDisabled, Severity::Info, idle("Disabled")),
        Case::error(
            FindingId::InvalidSchedule,
            vec![Step::Conditions(
                DESK,
                vec![
                    condition("Scheduled", "False", "InvalidSchedule", message),
                    condition("Ready", "False", "InvalidSpec", message),
                ],
            )],
        ),
        Case::warning(FindingId::Paused, paused("ObjectAnnotation", held)),
        Case::error(
            FindingId::RemovalsHeld,
            paused("TooManyRemovals", "21 of 100 machines would be removed within ten minutes"),
        ),
        Case::warning(
            FindingId::TimezoneSuspect,
            vec![Step::Merge(DESK, json!({"spec": {"schedule": {"timezone": "Etc/GMT+5"}}}))],
        ),
    ]
}

fn references() -> Vec<Case> {
    let refused =
        "CAPI operation failed: apply Machine shop/desk-machine: admission webhook denied the request (403)";
    let waiting = json!([{"type": "InfrastructureReady", "status": "False", "reason": "NotReady", "message": "waiting for ssh", "lastTransitionTime": AN_HOUR_AGO}]);
    let joining = condition("MachineReady", "False", "NoNodeYet", "waiting for the Node");
    let collection = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines";
    let mut other = machine("other", &json!({}));
    other["spec"]["schedule"]["enabled"] = json!(false);
    vec![
        Case::error(
            FindingId::ReferenceNotFound,
            failing("NotFound", "spec.clusterName: Cluster shop/prod does not exist"),
        ),
        Case::error(
            FindingId::KubeconfigUnusable,
            failing("KubeconfigInvalid", "Secret shop/shop-kubeconfig: key value is not a kubeconfig"),
        ),
        Case::error(FindingId::WrongCluster, failing("WrongCluster", "leads to another cluster")),
        Case::error(
            FindingId::NameTaken,
            failing("NameTaken", "Machine shop/desk-machine already exists and is not ours"),
        ),
        Case::error(
            FindingId::JoinFailed,
            failing("JoinFailed", "Machine desk-machine had no Ready node within joinTimeout"),
        ),
        Case::warning(
            FindingId::MachineInUse,
            failing(
                "MachineInUse",
                "waiting for the physical machine, which ScheduledMachine shop/other uses; the schedule is open",
            ),
        ),
        Case::error(FindingId::MachineCreationFailed, failing("ReconcileFailed", refused)),
        Case::error(
            FindingId::BackingOff,
            failing("ReconcileFailed", "cordon Node desk-1: no answer within 30 s"),
        ),
        Case::warning(
            FindingId::ProviderNotReady,
            vec![
                Step::Status(MACHINE, json!({"nodeRef": null, "conditions": waiting})),
                Step::Status(DESK, json!({"nodeRef": null})),
                Step::Conditions(DESK, vec![joining]),
            ],
        ),
        // A machine of a neighbour that is off changes nothing.
        Case::new(FindingId::ScheduleNotNow, Severity::Info, {
            let mut steps = idle("OutsideWindow");
            steps.push(Step::Create(collection, other));
            steps
        }),
    ]
}

fn nodes() -> Vec<Case> {
    let ready = |reason: &str| {
        vec![Step::Conditions(DESK, vec![condition("MachineReady", "False", reason, "the node")])]
    };
    let tainted = |status: &str, reason: &str, message: &str| {
        vec![Step::Conditions(DESK, vec![condition("NodeTainted", status, reason, message)])]
    };
    let conflict =
        "taints on the Node that 5-Spot did not set: example.org/a:NoSchedule; remove them from the Node";
    let mut absent = tainted("Unknown", "NoNodeYet", "waiting for the Node");
    absent.push(Step::Delete(NODE));
    let unready = json!([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized",
        "lastTransitionTime": AN_HOUR_AGO}]);
    let mut not_ready = tainted("False", "NodeNotReady", "waiting for the Node to become Ready");
    not_ready.push(Step::Status(NODE, json!({"conditions": unready})));
    vec![
        Case::error(FindingId::NodeLost, ready("NodeLost")),
        Case::warning(
            FindingId::NodeLost,
            vec![Step::Conditions(DESK, vec![condition("MachineReady", "Unknown", "NodeLost", "no Node")])],
        ),
        Case::warning(FindingId::NodeLeftBehind, ready("NodeLeftBehind")),
        Case::warning(FindingId::TaintNoNodeYet, absent),
        Case::warning(FindingId::TaintNodeNotReady, not_ready),
        Case::warning(FindingId::TaintConflict, tainted("False", "TaintOwnershipConflict", conflict)),
        Case::error(FindingId::TaintPatchFailed, tainted("False", "PatchFailed", "nodes is forbidden (403)")),
    ]
}

fn record(requested: &str, finished: Option<&str>) -> Value {
    let mut record =
        json!({"requestedAt": requested, "reason": "process-match: java", "node": "desk-1", "nodeUID": "u"});
    if let Some(finished) = finished {
        record["finishedAt"] = json!(finished);
    }
    record
}

fn reclaims() -> Vec<Case> {
    let unfinished =
        || json!({"phase": "EmergencyRemove", "reclaims": [record("2026-11-16T11:30:00Z", None)]});
    let disabled = json!({"spec": {"schedule": {"enabled": false}}});
    let done = |times: [&str; 3]| {
        let records: Vec<Value> = times.iter().map(|time| record(time, Some(time))).collect();
        vec![Step::Status(DESK, json!({"reclaims": records}))]
    };
    vec![
        Case::error(
            FindingId::EmergencyStuck,
            vec![Step::Merge(DESK, disabled), Step::Delete(MACHINE), Step::Status(DESK, unfinished())],
        ),
        Case::error(
            FindingId::ScheduleNotDisabledAfterReclaim,
            released().into_iter().chain([Step::Status(DESK, unfinished())]).collect(),
        ),
        Case::warning(
            FindingId::RapidReReclaim,
            done(["2026-11-16T11:50:00Z", "2026-11-16T11:46:00Z", "2026-11-16T11:41:00Z"]),
        ),
        Case::warning(
            FindingId::EjectedEveryWindow,
            done(["2026-11-16T09:10:00Z", "2026-11-13T09:10:00Z", "2026-11-12T09:12:00Z"]),
        ),
    ]
}

fn removals() -> Vec<Case> {
    let ours = json!({"metadata": {"finalizers": ["5spot.finos.org/scheduledmachine"]}});
    let long = || Step::Pass(Duration::from_mins(20));
    vec![
        Case::error(FindingId::MachineStuckDeleting, vec![Step::Delete(MACHINE), long()]),
        Case::error(FindingId::FinalizerOverdue, vec![Step::Merge(DESK, ours), Step::Delete(DESK), long()]),
        Case::warning(FindingId::OrphanedMachine, vec![Step::Delete(DESK)]),
    ]
}
