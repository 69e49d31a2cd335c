//! The things that keep an object from the state that it should be in, each with its evidence and what to do about it.

use super::{Blocker, Subject};
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::{Phase, names};
use five_spot_core::world::{
    FormerNode, NodeFact, Readiness, ReferenceProblemKind, Slot, Workload, WorkloadProblem,
};
use five_spot_core::{Fault, FaultKind};
use jiff::SignedDuration;

/// The time that a controller may take to act on a boundary before it counts as late. It is woken at the boundary itself.
const LATE: SignedDuration = SignedDuration::from_mins(2);

/// Returns all blockers, the causes before their consequences.
pub(super) fn all(subject: &Subject<'_>) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    blockers.extend(late_controller(subject));
    blockers.extend(pause(subject));
    blockers.extend(subject.decision.fault.as_ref().map(|fault| of_fault(subject, fault)));
    blockers.extend(missing_reference(subject));
    blockers.extend(failed_attempts(subject));
    blockers.extend(drain(subject));
    blockers.extend(old_objects(subject));
    blockers.extend(node(subject));
    blockers.extend(left_behind(subject));
    blockers.extend(taints(subject));
    blockers.extend(stopped(subject));
    blockers
}

fn blocker(what: impl Into<String>, evidence: Vec<String>, fix: Vec<String>) -> Blocker {
    Blocker { what: what.into(), evidence, fix }
}

/// `Ready=False/NodeLost: the node ...`.
fn words(kind: ConditionType, (status, reason, message): (&str, &str, &str)) -> String {
    format!("{}={status}/{reason}: {message}", kind.as_str())
}

/// A boundary that has passed, and nobody has written a status since.
fn late_controller(subject: &Subject<'_>) -> Option<Blocker> {
    let recorded = &subject.world.status;
    let fix = vec![
        "5spot doctor".to_owned(),
        "kubectl get pods -n 5spot-system -l app=5spot-controller".to_owned(),
    ];
    if recorded.phase.is_none() {
        return Some(blocker(
            "no controller has reported a status yet",
            vec!["status.phase is not set".to_owned()],
            fix,
        ));
    }
    let due =
        [&recorded.next_activation, &recorded.next_cleanup].into_iter().flatten().map(|time| time.0).min()?;
    let late = subject.now.duration_since(due);
    (late > LATE).then(|| {
        blocker(
            "the controller has not acted on a boundary of the schedule",
            vec![format!("status.nextChange is {due}, {} minutes ago", late.as_mins())],
            fix,
        )
    })
}

fn pause(subject: &Subject<'_>) -> Option<Blocker> {
    let condition = subject.condition(ConditionType::Paused)?;
    let (status, reason, message) = condition;
    if status != "True" || message.contains("no changes are held back") {
        return None;
    }
    let (name, namespace) = (subject.name(), subject.namespace());
    let machine = names::machine(name);
    let cluster = subject.valid().map_or("CLUSTER", |spec| spec.cluster_name.as_str());
    let on_machine =
        message.contains(&format!("Machine {namespace}/{machine}")) && !message.contains("ScheduledMachine");
    let fix = match reason {
        "ObjectAnnotation" => {
            format!("kubectl annotate scheduledmachine {name} -n {namespace} 5spot.finos.org/paused-")
        }
        "NamespaceAnnotation" => format!("kubectl annotate namespace {namespace} 5spot.finos.org/paused-"),
        "CapiAnnotation" if on_machine => {
            format!("kubectl annotate machine {machine} -n {namespace} cluster.x-k8s.io/paused-")
        }
        "CapiAnnotation" => {
            format!("kubectl annotate scheduledmachine {name} -n {namespace} cluster.x-k8s.io/paused-")
        }
        "ClusterPaused" => format!(
            "kubectl patch cluster {cluster} -n {namespace} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'"
        ),
        "TooManyRemovals" => "5spot doctor shows what would be removed; to let it go, set the annotation \
             5spot.finos.org/allow-removals on the controller's namespace to an RFC 3339 time in the future"
            .to_owned(),
        _ => "remove the pause".to_owned(),
    };
    Some(blocker("a pause holds changes back", vec![words(ConditionType::Paused, condition)], vec![fix]))
}

fn of_fault(subject: &Subject<'_>, fault: &Fault) -> Blocker {
    let evidence = vec![format!("Ready=False/{}: {}", fault.kind.reason().as_str(), fault.message)];
    let (what, fix) = match fault.kind {
        FaultKind::InvalidSpec => ("the spec is invalid", vec![subject.kubectl("edit")]),
        FaultKind::NameTaken => (
            "an object that 5-Spot did not create has the name of one that it has to create",
            vec![
                format!(
                    "kubectl get machine {} -n {} -o yaml",
                    names::machine(subject.name()),
                    subject.namespace()
                ),
                "give the ScheduledMachine another name, or delete that object if nobody needs it".to_owned(),
            ],
        ),
        FaultKind::References(kind) => references(subject, kind),
        FaultKind::Workload(problem) => workload(subject, problem),
        FaultKind::DrainTimedOut => (
            "pods still block the drain after its deadline",
            vec![
                "kubectl get pdb -A".to_owned(),
                format!(
                    "to give up the pods: {} --type=merge -p '{{\"spec\":{{\"drain\":{{\"onTimeout\":\"Force\"}}}}}}'",
                    subject.kubectl("patch")
                ),
            ],
        ),
        FaultKind::JoinFailed => (
            "the node did not become Ready within joinTimeout",
            vec![
                format!(
                    "kubectl describe machine {} -n {}",
                    names::machine(subject.name()),
                    subject.namespace()
                ),
                "look at the provider and at the machine itself: power, network, the logs of its kubelet"
                    .to_owned(),
            ],
        ),
        FaultKind::CleanupTimedOut => (
            "the cleanup of the deleted object exceeded its time limit",
            vec![format!("5spot why scheduledmachine/{} -n {}", subject.name(), subject.namespace())],
        ),
        FaultKind::Refused => ("the API server refuses an action", vec![subject.kubectl("describe")]),
        FaultKind::Repeated => ("actions fail repeatedly", vec![subject.kubectl("describe")]),
    };
    blocker(what, evidence, fix)
}

fn references(subject: &Subject<'_>, kind: ReferenceProblemKind) -> (&'static str, Vec<String>) {
    match kind {
        ReferenceProblemKind::NotFound => (
            "an object or kind that the spec refers to does not exist",
            vec![
                format!("kubectl get clusters -n {}", subject.namespace()),
                "kubectl api-resources --categories=cluster-api".to_owned(),
            ],
        ),
        ReferenceProblemKind::Forbidden => (
            "the controller lacks a permission",
            vec![
                "grant it with a ClusterRole that has the label 5spot.finos.org/aggregate-to-controller=true"
                    .to_owned(),
            ],
        ),
        ReferenceProblemKind::NotAllowed => {
            ("the spec refers to something that is not allowed", vec![subject.kubectl("edit")])
        }
    }
}

fn workload(subject: &Subject<'_>, problem: WorkloadProblem) -> (&'static str, Vec<String>) {
    let namespace = subject.namespace();
    let secret = subject.world.workload.cluster().secret_name.as_deref().unwrap_or("SECRET");
    let look = format!("kubectl get secret {secret} -n {namespace}");
    match problem {
        WorkloadProblem::SecretMissing => (
            "the Secret with the kubeconfig of the workload cluster does not exist",
            vec![look, "let Cluster API write it, or name another with spec.kubeconfigSecretRef".to_owned()],
        ),
        WorkloadProblem::SecretForbidden => (
            "the controller may not read the kubeconfig of the workload cluster",
            vec![format!(
                "kubectl create rolebinding 5spot-kubeconfig-reader --clusterrole=5spot-kubeconfig-reader \
                 --serviceaccount=5spot-system:5spot-controller -n {namespace}"
            )],
        ),
        WorkloadProblem::KubeconfigInvalid => {
            ("the kubeconfig of the workload cluster is unusable", vec![look])
        }
        WorkloadProblem::Refused => (
            "the workload cluster rejects the credentials of the kubeconfig",
            vec![look, "renew the credentials, and grant the rules in deploy/rbac-nodes there".to_owned()],
        ),
        WorkloadProblem::Unreachable => (
            "the workload cluster does not answer",
            vec![
                format!("kubectl get cluster -n {namespace}"),
                "check its API server and the network".to_owned(),
            ],
        ),
        WorkloadProblem::WrongCluster => (
            "the kubeconfig leads to another cluster than the one of the Node",
            vec![look, "put the kubeconfig of the right cluster back into the Secret".to_owned()],
        ),
    }
}

/// A reference that is no fault at the moment, and will be one when the next Machine has to be created.
fn missing_reference(subject: &Subject<'_>) -> Option<Blocker> {
    let condition =
        subject.condition(ConditionType::ReferencesValid).filter(|(status, ..)| *status == "False")?;
    if subject.decision.fault.is_some() || !super::is_wanted(subject.decision.demand) {
        return None;
    }
    Some(blocker(
        "the next Machine cannot be created",
        vec![words(ConditionType::ReferencesValid, condition)],
        vec![format!("kubectl get clusters -n {}", subject.namespace())],
    ))
}

/// The last report of the controller, if it failed for a reason that a look from outside does not show.
fn failed_attempts(subject: &Subject<'_>) -> Option<Blocker> {
    let recorded = subject.recorded(ConditionType::Ready)?;
    if subject.decision.fault.is_some() || recorded.1 != Reason::ReconcileFailed.as_str() {
        return None;
    }
    Some(blocker(
        "the last attempts of the controller failed; it tries again after 30 s, and then less often",
        vec![words(ConditionType::Ready, recorded)],
        vec![format!(
            "{} 5spot.finos.org/force-reconcile=\"$(date -u +%s)\" --overwrite",
            subject.kubectl("annotate")
        )],
    ))
}

/// The pods that block a drain that is within its deadline.
fn drain(subject: &Subject<'_>) -> Option<Blocker> {
    let drain = subject.decision.status.drain.as_ref().filter(|drain| !drain.blocked.is_empty())?;
    // After the deadline they are in the message of the fault; a Machine that is being deleted takes them along.
    let has_timed_out =
        subject.decision.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::DrainTimedOut);
    let is_deleted = subject.world.machine.ours().is_none_or(|machine| machine.terminating);
    if has_timed_out || is_deleted || !matches!(subject.phase(), Phase::ShuttingDown | Phase::Error) {
        return None;
    }
    let evidence =
        drain.blocked.iter().map(|blocked| format!("pod {}: {}", blocked.pod, blocked.reason)).collect();
    let mut fix: Vec<String> = Vec::new();
    if drain.blocked.iter().any(|blocked| blocked.reason.contains("disruption budget")) {
        fix.push("kubectl get pdb -A".to_owned());
        fix.push(
            "start more replicas elsewhere, or lower minAvailable of the PodDisruptionBudget".to_owned(),
        );
    }
    if drain.blocked.iter().any(|blocked| blocked.reason.contains("terminating")) {
        fix.push("kubectl describe pod shows the finalizers and containers that keep the pod".to_owned());
    }
    Some(blocker(
        format!("{} of {} pods have left the node; the others block the drain", drain.evicted, drain.total),
        evidence,
        fix,
    ))
}

/// The objects of the last Machine, which have to be gone before another is created.
fn old_objects(subject: &Subject<'_>) -> Option<Blocker> {
    let world = subject.world;
    let (namespace, name) = (subject.namespace(), subject.name());
    let mut going = Vec::new();
    if world.machine.ours().is_some_and(|machine| machine.terminating) {
        going.push(format!("Machine {namespace}/{}", names::machine(name)));
    }
    for (slot, name) in
        [(&world.infrastructure, names::infrastructure(name)), (&world.bootstrap, names::bootstrap(name))]
    {
        if let Slot::Ours(object) = slot
            && object.terminating
        {
            going.push(format!("{} {namespace}/{name}", object.kind.kind));
        }
    }
    if going.is_empty() {
        return None;
    }
    let fix = vec![format!("5spot why machine/{} -n {namespace}", names::machine(name))];
    let evidence = going.iter().map(|object| format!("{object} has a deletionTimestamp")).collect();
    Some(blocker(
        format!("{} {} being deleted", going.join(", "), if going.len() == 1 { "is" } else { "are" }),
        evidence,
        fix,
    ))
}

/// The Node of a machine that is wanted.
fn node(subject: &Subject<'_>) -> Option<Blocker> {
    let world = subject.world;
    if subject.decision.fault.is_some() || world.machine.ours().is_none_or(|machine| machine.terminating) {
        return None;
    }
    let condition = subject.condition(ConditionType::MachineReady)?;
    let evidence = vec![words(ConditionType::MachineReady, condition)];
    let machine = names::machine(subject.name());
    let describe = format!("kubectl describe machine {machine} -n {}", subject.namespace());
    match &world.node {
        NodeFact::Found(node) => match node.readiness {
            Readiness::Ready => None,
            Readiness::NotReady | Readiness::Unreachable => Some(blocker(
                format!("node {} is not Ready", node.name),
                evidence,
                vec![format!("in the workload cluster: kubectl describe node {}", node.name)],
            )),
        },
        NodeFact::NotYet | NodeFact::Gone => {
            let what = match condition.1 {
                "NodeLost" => "the node had joined and is gone",
                _ => "the node has not joined yet",
            };
            Some(blocker(what, evidence, vec![describe]))
        }
        NodeFact::Mismatch { name } => Some(blocker(
            format!("node {name} does not belong to the Machine"),
            evidence,
            vec![
                format!(
                    "kubectl get machine {machine} -n {} -o jsonpath='{{.spec.providerID}}'",
                    subject.namespace()
                ),
                format!(
                    "in the workload cluster: kubectl get node {name} -o jsonpath='{{.spec.providerID}}'"
                ),
            ],
        )),
        NodeFact::Unknown => match &world.workload {
            Workload::Pending(_) => {
                Some(blocker("the workload cluster has not answered yet", evidence, Vec::new()))
            }
            Workload::Reachable(_) | Workload::Unusable { .. } => {
                Some(blocker("the state of the node is unknown", evidence, vec![describe]))
            }
        },
    }
}

fn left_behind(subject: &Subject<'_>) -> Option<Blocker> {
    if subject.world.former_node != FormerNode::LeftBehind {
        return None;
    }
    let node = subject.world.status.node_ref.as_ref().map_or("", |node| node.name.as_str());
    let condition = subject.condition(ConditionType::MachineReady)?;
    Some(blocker(
        format!("node {node} has outlived its Machine"),
        vec![words(ConditionType::MachineReady, condition)],
        vec![format!(
            "once its owner has the machine back, in the workload cluster: kubectl delete node {node}"
        )],
    ))
}

fn taints(subject: &Subject<'_>) -> Option<Blocker> {
    let condition = subject.condition(ConditionType::NodeTainted)?;
    let node = subject.world.node.found().map_or("NODE", |node| node.name.as_str());
    let fix = match condition.1 {
        "TaintOwnershipConflict" => vec![
            format!("in the workload cluster: kubectl get node {node} -o jsonpath='{{.spec.taints}}'"),
            format!(
                "remove the other taint (kubectl taint nodes {node} KEY:EFFECT-), or change spec.nodeTaints"
            ),
        ],
        "PatchFailed" => {
            vec!["grant `patch` on nodes in the workload cluster (deploy/rbac-nodes)".to_owned()]
        }
        _ => return None,
    };
    Some(blocker(
        "the taints of spec.nodeTaints are not on the node",
        vec![words(ConditionType::NodeTainted, condition)],
        fix,
    ))
}

/// A person or an emergency keeps the machine away.
fn stopped(subject: &Subject<'_>) -> Option<Blocker> {
    let (namespace, name) = (subject.namespace(), subject.name());
    let last = subject.decision.status.reclaims.first();
    let reclaim = last.map(|record| {
        format!(
            "status.reclaims: requested at {} on node {}: {}",
            record.requested_at.0, record.node, record.reason
        )
    });
    let patch = |spec: &str| format!("{} --type=merge -p '{{\"spec\":{spec}}}'", subject.kubectl("patch"));
    let demand = subject.decision.demand;
    if demand == Reason::KillSwitch {
        let evidence = vec!["spec.killSwitch is true".to_owned()];
        return Some(blocker("the kill switch is on", evidence, vec![patch(r#"{"killSwitch":false}"#)]));
    }
    let enable = patch(r#"{"schedule":{"enabled":true}}"#);
    if demand == Reason::Disabled {
        let evidence = vec!["spec.schedule.enabled is false".to_owned()];
        return Some(blocker("the schedule is disabled", evidence, vec![enable]));
    }
    if demand == Reason::AwaitingResume {
        let resume = format!(
            "when the owner agrees: kubectl annotate scheduledmachine {name} -n {namespace} --overwrite \
             5spot.finos.org/resume=\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\""
        );
        let what = "the owner reclaimed the machine, and nobody has allowed it to be lent again";
        return Some(blocker(what, reclaim.into_iter().collect(), vec![resume]));
    }
    if demand == Reason::EmergencyReclaimDisabledSchedule && subject.phase() == Phase::Disabled {
        let what = "the owner reclaimed the machine, and the schedule is disabled since";
        let fix = vec![format!("when the owner agrees: {enable}")];
        return Some(blocker(what, reclaim.into_iter().collect(), fix));
    }
    None
}
