//! Worlds in which a machine is broken, by its status and by what belongs to it.

use crate::World;
use crate::fixtures::{
    capi_machine, condition, failing, healthy, idle, idle_facts, lent, lent_with, with_object,
};
use five_spot_diagnose::doctor::{DoctorFacts, FindingId, MachineFacts, Severity};
use serde_json::{Value, json};

const LONG_AGO: &str = "2026-11-16T11:00:00Z";

pub fn all() -> Vec<World> {
    [schedules(), references(), nodes(), reclaims(), removals()].into_iter().flatten().collect()
}

fn schedules() -> Vec<World> {
    let info = Severity::Info;
    let zoned = |zone: &str| {
        let mut object = lent();
        object["spec"]["schedule"]["timezone"] = json!(zone);
        object
    };
    let paused = |reason: &str, message: &str| {
        with_object(lent_with(&[condition("Paused", "True", reason, message, LONG_AGO)]))
    };
    let held = "paused by annotation 5spot.finos.org/paused on ScheduledMachine shop/desk; held back: delete the Machine";
    vec![
        ("outside its window", FindingId::ScheduleNotNow, info, idle_facts(idle("OutsideWindow"))),
        ("an override keeps it down", FindingId::ScheduleNotNow, info, idle_facts(idle("OverrideDown"))),
        ("disabled", FindingId::ScheduleDisabled, info, idle_facts(idle("Disabled"))),
        ("kill switch", FindingId::ScheduleDisabled, info, idle_facts(idle("KillSwitch"))),
        (
            "disabled by a reclaim",
            FindingId::ScheduleDisabled,
            info,
            idle_facts(idle("EmergencyReclaimDisabledSchedule")),
        ),
        ("awaits a person", FindingId::ScheduleDisabled, info, idle_facts(idle("AwaitingResume"))),
        ("an invalid schedule, by the controller", FindingId::InvalidSchedule, Severity::Error, {
            let scheduled = condition(
                "Scheduled",
                "False",
                "InvalidSchedule",
                "spec.schedule.timezone: found X",
                LONG_AGO,
            );
            let ready =
                condition("Ready", "False", "InvalidSpec", "spec.schedule.timezone: found X", LONG_AGO);
            with_object(lent_with(&[scheduled, ready]))
        }),
        ("an invalid schedule, by the doctor", FindingId::InvalidSchedule, Severity::Error, {
            let mut object = lent();
            object["spec"]["schedule"]["daysOfWeek"] = json!(["monday"]);
            with_object(object)
        }),
        ("paused", FindingId::Paused, Severity::Warning, paused("ObjectAnnotation", held)),
        ("paused, and nothing is held back", FindingId::Paused, info, {
            paused(
                "ClusterPaused",
                "paused by spec.paused of Cluster shop/prod; no changes are held back at the moment",
            )
        }),
        ("too many removals", FindingId::RemovalsHeld, Severity::Error, {
            paused("TooManyRemovals", "21 of 100 machines would be removed within ten minutes")
        }),
        ("an inverted zone", FindingId::TimezoneSuspect, Severity::Warning, with_object(zoned("Etc/GMT+5"))),
        ("an abbreviation", FindingId::TimezoneSuspect, Severity::Warning, with_object(zoned("EST"))),
        ("UTC among New Yorkers", FindingId::TimezoneSuspect, info, {
            let mut facts = healthy();
            facts.machines = (0..5)
                .map(|number| {
                    let mut object = zoned(if number == 0 { "UTC" } else { "America/New_York" });
                    object["metadata"]["name"] = json!(format!("desk-{number}"));
                    MachineFacts::new(object)
                })
                .collect();
            facts.capi_machines = Vec::new();
            facts
        }),
    ]
}

fn references() -> Vec<World> {
    let error = Severity::Error;
    let failed = |reason: &str, message: &str| with_object(failing(reason, message));
    vec![
        ("no such Cluster", FindingId::ReferenceNotFound, error, {
            failed("NotFound", "spec.clusterName: Cluster shop/prod does not exist")
        }),
        (
            "not allowed",
            FindingId::ReferenceNotFound,
            error,
            failed("NotAllowed", "spec.infrastructureSpec: group"),
        ),
        (
            "an invalid spec",
            FindingId::ReferenceNotFound,
            error,
            failed("InvalidSpec", "spec.priority: found 300"),
        ),
        ("a forbidden kind", FindingId::RbacMissing, error, {
            failed(
                "Forbidden",
                "spec.infrastructureSpec: remotemachines is forbidden; grant get, list, watch",
            )
        }),
        ("a forbidden Secret", FindingId::RbacMissing, error, {
            failed("Forbidden", "the controller may not read Secret shop/prod-kubeconfig: forbidden (403)")
        }),
        ("no kubeconfig", FindingId::KubeconfigUnusable, error, {
            failed(
                "NotFound",
                "there is no Secret prod-kubeconfig in namespace shop; Cluster API has to write it",
            )
        }),
        ("a broken kubeconfig", FindingId::KubeconfigUnusable, error, {
            failed("KubeconfigInvalid", "Secret shop/prod-kubeconfig: key value is not a kubeconfig")
        }),
        ("refused credentials", FindingId::KubeconfigUnusable, error, {
            failed("Forbidden", "the Nodes of the workload cluster cannot be listed: Unauthorized (401)")
        }),
        ("an unreachable cluster", FindingId::KubeconfigUnusable, error, {
            let unknown =
                condition("MachineReady", "Unknown", "Unreachable", "the cluster is unreachable", LONG_AGO);
            with_object(lent_with(&[unknown]))
        }),
        (
            "another cluster",
            FindingId::WrongCluster,
            error,
            failed("WrongCluster", "leads to another cluster"),
        ),
        (
            "a name that is taken",
            FindingId::NameTaken,
            error,
            failed("NameTaken", "Machine shop/desk-machine already exists"),
        ),
        (
            "a node that did not join",
            FindingId::JoinFailed,
            error,
            failed("JoinFailed", "had no Ready node within joinTimeout"),
        ),
        ("a machine in use", FindingId::MachineInUse, Severity::Warning, {
            failed(
                "MachineInUse",
                "waiting for the physical machine, which ScheduledMachine shop/other uses; the schedule is open",
            )
        }),
        ("a double loan", FindingId::MachineInUse, error, {
            let used = condition(
                "ReferencesValid",
                "False",
                "MachineInUse",
                "ScheduledMachine shop/other is lent the same physical machine; both keep it",
                LONG_AGO,
            );
            let ready = condition("Ready", "False", "NodeNotReady", "x", LONG_AGO);
            with_object(lent_with(&[used, ready]))
        }),
        ("a refused create", FindingId::MachineCreationFailed, error, {
            let message = "CAPI operation failed: apply Machine shop/desk-machine: admission webhook denied the request (403)";
            failed("ReconcileFailed", message)
        }),
        (
            "another failure",
            FindingId::BackingOff,
            error,
            failed("ReconcileFailed", "cordon Node desk-1: no answer within 30 s"),
        ),
        ("a provider that waits", FindingId::ProviderNotReady, Severity::Warning, {
            let mut facts = healthy();
            let mut machine = capi_machine();
            machine["metadata"]["creationTimestamp"] = json!(LONG_AGO);
            machine["status"] = json!({"conditions": [{"type": "InfrastructureReady", "status": "False",
                "reason": "NotReady", "message": "waiting for ssh"}]});
            facts.capi_machines = vec![machine];
            facts
        }),
    ]
}

fn nodes() -> Vec<World> {
    let ready = |reason: &str| condition("MachineReady", "False", reason, "the node", LONG_AGO);
    let tainted = |status: &str, reason: &str, message: &str| {
        with_object(lent_with(&[condition("NodeTainted", status, reason, message, LONG_AGO)]))
    };
    let conflict =
        "taints on the Node that 5-Spot did not set: example.org/a:NoSchedule; remove them from the Node";
    vec![
        ("a lost node", FindingId::NodeLost, Severity::Error, with_object(lent_with(&[ready("NodeLost")]))),
        ("a node that may be lost", FindingId::NodeLost, Severity::Warning, {
            let message = "the workload cluster has no Node for this Machine, but Cluster API reports the node as healthy";
            with_object(lent_with(&[condition("MachineReady", "Unknown", "NodeLost", message, LONG_AGO)]))
        }),
        ("a node left behind", FindingId::NodeLeftBehind, Severity::Warning, {
            with_object(lent_with(&[ready("NodeLeftBehind")]))
        }),
        ("taints, a Node that is named and absent", FindingId::TaintNoNodeYet, Severity::Warning, {
            tainted("Unknown", "NoNodeYet", "waiting for the Node")
        }),
        ("taints, a Node that is not Ready", FindingId::TaintNodeNotReady, Severity::Warning, {
            tainted("False", "NodeNotReady", "waiting for the Node to become Ready")
        }),
        ("taints, a conflict", FindingId::TaintConflict, Severity::Warning, {
            tainted("False", "TaintOwnershipConflict", conflict)
        }),
        (
            "taints, refused",
            FindingId::TaintPatchFailed,
            Severity::Error,
            tainted("False", "PatchFailed", "nodes is forbidden (403)"),
        ),
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

fn reclaimed(records: &[Value], enabled: bool) -> Value {
    let mut object = lent();
    object["status"]["reclaims"] = json!(records);
    object["spec"]["schedule"]["enabled"] = json!(enabled);
    object
}

fn reclaims() -> Vec<World> {
    let unfinished = record("2026-11-16T11:30:00Z", None);
    let done = |requested: &str| record(requested, Some(requested));
    let in_emergency = |object: &mut Value| object["status"]["phase"] = json!("EmergencyRemove");
    vec![
        ("a reclaim that does not end", FindingId::EmergencyStuck, Severity::Error, {
            let mut object = reclaimed(std::slice::from_ref(&unfinished), false);
            in_emergency(&mut object);
            with_object(object)
        }),
        ("a reclaim that does not disable", FindingId::ScheduleNotDisabledAfterReclaim, Severity::Error, {
            let mut object = reclaimed(&[unfinished], true);
            in_emergency(&mut object);
            idle_facts(object)
        }),
        ("reclaims in a row", FindingId::RapidReReclaim, Severity::Warning, {
            let times = ["2026-11-16T11:50:00Z", "2026-11-16T11:46:00Z", "2026-11-16T11:41:00Z"];
            with_object(reclaimed(&times.map(done), true))
        }),
        ("reclaims every day", FindingId::EjectedEveryWindow, Severity::Warning, {
            let times = ["2026-11-16T09:10:00Z", "2026-11-13T09:10:00Z", "2026-11-12T09:12:00Z"];
            with_object(reclaimed(&times.map(done), true))
        }),
    ]
}

fn removals() -> Vec<World> {
    let error = Severity::Error;
    let terminating = |since: &str| {
        let mut machine = capi_machine();
        machine["metadata"]["deletionTimestamp"] = json!(since);
        machine["status"]["conditions"] =
            json!([{"type": "Deleting", "status": "True", "reason": "WaitingForInfrastructureDeletion"}]);
        machine
    };
    vec![
        ("a Machine that does not go", FindingId::MachineStuckDeleting, error, {
            let mut facts = healthy();
            facts.capi_machines = vec![terminating(LONG_AGO)];
            facts
        }),
        ("a finalizer that stays", FindingId::FinalizerOverdue, error, {
            let mut object = lent();
            object["metadata"]["deletionTimestamp"] = json!(LONG_AGO);
            let mut facts = with_object(object);
            facts.capi_machines = vec![terminating(LONG_AGO)];
            facts
        }),
        (
            "a Machine without its object",
            FindingId::OrphanedMachine,
            Severity::Warning,
            orphan(capi_machine()),
        ),
        (
            "a Machine without its object that does not go",
            FindingId::OrphanedMachine,
            Severity::Warning,
            orphan(terminating(LONG_AGO)),
        ),
    ]
}

fn orphan(machine: Value) -> DoctorFacts {
    let mut facts = healthy();
    facts.machines = Vec::new();
    facts.known = Some(vec!["shop/other".to_owned()]);
    facts.capi_machines = vec![machine];
    facts
}

/// The commands of all findings that begin like this.
fn commands(facts: &DoctorFacts, begin: &str) -> Vec<String> {
    let report = five_spot_diagnose::doctor::examine(facts);
    let fixes = report.findings.iter().flat_map(|finding| &finding.fix);
    fixes.filter_map(|fix| fix.command.clone()).filter(|command| command.starts_with(begin)).collect()
}

/// Both kinds of messages name the other object.
#[test]
fn the_holder_of_a_machine_is_explained() {
    let worlds = references().into_iter().filter(|(_, id, ..)| *id == FindingId::MachineInUse);
    for (name, _, _, facts) in worlds {
        assert_eq!(commands(&facts, "5spot"), ["5spot explain other -n shop"], "{name}");
    }
}

/// The finalizers of others have work of their own to do.
#[test]
fn only_the_finalizer_of_the_controller_is_removed() {
    let mut object = lent();
    object["metadata"]["deletionTimestamp"] = json!(LONG_AGO);
    object["metadata"]["finalizers"] = json!(["example.org/hold", "5spot.finos.org/scheduledmachine"]);
    let patch = r#"kubectl patch scheduledmachine desk -n shop --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"5spot.finos.org/scheduledmachine"},{"op":"remove","path":"/metadata/finalizers/1"}]'"#;
    assert_eq!(commands(&with_object(object), "kubectl patch"), [patch]);
}

#[test]
fn a_longer_time_to_join_is_never_a_shorter_one() {
    for (given, longer) in [("20m", "40m"), ("30s", "40m"), ("2h", "240m"), ("20h", "1440m")] {
        let mut object = failing("JoinFailed", "had no Ready node within joinTimeout");
        object["spec"]["joinTimeout"] = json!(given);
        let patch = format!(
            "kubectl patch scheduledmachine desk -n shop --type=merge -p '{{\"spec\":{{\"joinTimeout\":\"{longer}\"}}}}'"
        );
        assert_eq!(commands(&with_object(object), "kubectl patch"), [patch], "{given}");
    }
}
