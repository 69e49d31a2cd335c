//! The things that keep an object from the state that it should be in, each with its evidence and what to do about it.

use super::{Blocker, Remedy, Subject};
use crate::shell::{object as target, quoted};
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::{Phase, names};
use five_spot_core::claim::{Claim, first};
use five_spot_core::world::{
    FormerNode, NodeFact, Readiness, ReferenceProblemKind, Slot, Workload, WorkloadProblem,
};
use five_spot_core::{Fault, FaultKind};
use jiff::{SignedDuration, Timestamp};

/// The time that a controller may take to act on a boundary before it counts as late. It is woken at the boundary itself.
const LATE: SignedDuration = SignedDuration::from_mins(2);

/// Returns all blockers, the causes before their consequences.
pub(super) fn all(subject: &Subject<'_>) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    blockers.extend(late_controller(subject));
    blockers.extend(pause(subject));
    blockers.extend(subject.decision.fault.as_ref().map(|fault| of_fault(subject, fault)));
    blockers.extend(missing_reference(subject));
    blockers.extend(machine_in_use(subject));
    blockers.extend(failed_attempts(subject));
    blockers.extend(drain(subject));
    blockers.extend(old_objects(subject));
    blockers.extend(node(subject));
    blockers.extend(left_behind(subject));
    blockers.extend(taints(subject));
    blockers.extend(stopped(subject));
    blockers
}

fn blocker(what: impl Into<String>, evidence: Vec<String>, fix: Vec<Remedy>) -> Blocker {
    Blocker { what: what.into(), evidence, fix }
}

/// A command in the workload cluster, and what to consider before it.
fn in_workload_cluster(advice: &str, command: String) -> [Remedy; 2] {
    [Remedy::advice(advice), Remedy::WorkloadCommand(command)]
}

/// The Machine of an object, as an argument: other APIs have a kind of that name.
fn machine(subject: &Subject<'_>) -> String {
    format!("machines.cluster.x-k8s.io {} -n {}", names::machine(subject.name()), subject.namespace())
}

/// `Ready=False/NodeLost: the node ...`.
fn words(kind: ConditionType, (status, reason, message): (&str, &str, &str)) -> String {
    format!("{}={status}/{reason}: {message}", kind.as_str())
}

/// A boundary that has passed, and nobody has written a status since.
fn late_controller(subject: &Subject<'_>) -> Option<Blocker> {
    let recorded = &subject.world.status;
    let fix = vec![
        Remedy::command(format!("5spot doctor {} -n {}", subject.name(), subject.namespace())),
        Remedy::command("kubectl get pods -n 5spot-system -l app=5spot-controller"),
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
    if status != "True" {
        return None;
    }
    let what = if message.contains("no changes are held back") {
        "a pause will hold back the next changes"
    } else {
        "a pause holds changes back"
    };
    let (name, namespace) = (subject.name(), subject.namespace());
    let on_machine = message.contains(&format!("Machine {namespace}/{}", names::machine(name)))
        && !message.contains("ScheduledMachine");
    let fix = match (reason, subject.valid()) {
        ("ObjectAnnotation", _) => {
            vec![Remedy::command(format!("{} 5spot.finos.org/paused-", subject.kubectl("annotate")))]
        }
        ("NamespaceAnnotation", _) => {
            vec![Remedy::command(format!("kubectl annotate namespace {namespace} 5spot.finos.org/paused-"))]
        }
        ("CapiAnnotation", _) if on_machine => {
            let object = machine(subject);
            vec![Remedy::command(format!("kubectl annotate {object} cluster.x-k8s.io/paused-"))]
        }
        ("CapiAnnotation", _) => {
            vec![Remedy::command(format!("{} cluster.x-k8s.io/paused-", subject.kubectl("annotate")))]
        }
        ("ClusterPaused", Some(spec)) => vec![Remedy::command(format!(
            "kubectl patch clusters.cluster.x-k8s.io {} -n {namespace} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'",
            quoted(spec.cluster_name.as_str())
        ))],
        ("TooManyRemovals", _) => vec![
            Remedy::command(format!("5spot doctor -n {namespace}")),
            Remedy::advice("find out what changed; then this lets all removals go for an hour:"),
            Remedy::command(format!(
                "kubectl annotate namespace 5spot-system --overwrite 5spot.finos.org/allow-removals={}",
                in_an_hour(subject)
            )),
        ],
        _ => vec![Remedy::advice("remove the pause")],
    };
    Some(blocker(what, vec![words(ConditionType::Paused, condition)], fix))
}

/// The time in an hour, to the second. `date` has other flags on other systems.
fn in_an_hour(subject: &Subject<'_>) -> Timestamp {
    Timestamp::from_second(subject.now.as_second().saturating_add(3600)).unwrap_or(Timestamp::MAX)
}

/// Something that only the reader may not read or cannot reach.
fn of_reader(subject: &Subject<'_>, fault: &Fault) -> Blocker {
    let report = subject.recorded(ConditionType::Ready).map(|ready| words(ConditionType::Ready, ready));
    let evidence = [format!("as seen from here: {}", fault.message)];
    let report = report.map(|report| format!("the last report of the controller: {report}"));
    let fix = Remedy::advice(
        "the controller reports no such problem; use a kubeconfig that may read the Secret of the workload \
         cluster, on a computer that reaches that cluster",
    );
    blocker(
        "with your kubeconfig only a part of this can be seen; the phase is the one that the controller has reported",
        evidence.into_iter().chain(report).collect(),
        vec![fix],
    )
}

fn of_fault(subject: &Subject<'_>, fault: &Fault) -> Blocker {
    if subject.is_limited_to_the_reader() {
        return of_reader(subject, fault);
    }
    let mut evidence = vec![format!("Ready=False/{}: {}", fault.kind.reason().as_str(), fault.message)];
    if fault.kind == FaultKind::DrainTimedOut {
        evidence.extend(blocked_pods(subject));
    }
    let (namespace, name) = (subject.namespace(), subject.name());
    let (what, fix) = match fault.kind {
        FaultKind::InvalidSpec => ("the spec is invalid", vec![Remedy::command(subject.kubectl("edit"))]),
        FaultKind::NameTaken => (
            "an object that 5-Spot did not create has the name of one that it has to create",
            vec![
                Remedy::command(format!("kubectl get {} -o yaml", machine(subject))),
                Remedy::advice(
                    "give the ScheduledMachine another name, or delete that object if nobody needs it",
                ),
            ],
        ),
        FaultKind::References(kind) => references(subject, kind),
        FaultKind::Workload(problem) => workload(subject, problem),
        FaultKind::DrainTimedOut => (
            "pods still block the drain after its deadline",
            in_workload_cluster("in the workload cluster:", "kubectl get poddisruptionbudgets -A".to_owned())
                .into_iter()
                .chain([
                    Remedy::advice("to delete the Machine anyway; the pods on its node are lost:"),
                    Remedy::command(format!(
                        "{} --type=merge -p '{{\"spec\":{{\"drain\":{{\"onTimeout\":\"Force\"}}}}}}'",
                        subject.kubectl("patch")
                    )),
                ])
                .collect(),
        ),
        FaultKind::JoinFailed => (
            "the node did not become Ready within joinTimeout",
            vec![
                Remedy::command(format!("kubectl describe {}", machine(subject))),
                Remedy::advice(
                    "look at the provider and at the machine itself: power, network, the logs of its kubelet",
                ),
            ],
        ),
        FaultKind::CleanupTimedOut => (
            "the cleanup of the deleted object exceeded its time limit",
            vec![Remedy::command(format!("5spot why scheduledmachine/{name} -n {namespace}"))],
        ),
        FaultKind::Refused => {
            ("the API server refuses an action", vec![Remedy::command(subject.kubectl("describe"))])
        }
        FaultKind::Repeated => {
            ("actions fail repeatedly", vec![Remedy::command(subject.kubectl("describe"))])
        }
    };
    blocker(what, evidence, fix)
}

/// The Clusters of the namespace.
fn clusters(subject: &Subject<'_>) -> Remedy {
    Remedy::command(format!("kubectl get clusters.cluster.x-k8s.io -n {}", subject.namespace()))
}

fn references(subject: &Subject<'_>, kind: ReferenceProblemKind) -> (&'static str, Vec<Remedy>) {
    match kind {
        ReferenceProblemKind::NotFound => (
            "an object or kind that the spec refers to does not exist",
            vec![clusters(subject), Remedy::command("kubectl api-resources --categories=cluster-api")],
        ),
        ReferenceProblemKind::Forbidden => (
            "the controller lacks a permission",
            vec![Remedy::advice(
                "grant it with a ClusterRole that has the label 5spot.finos.org/aggregate-to-controller=true",
            )],
        ),
        ReferenceProblemKind::NotAllowed => (
            "the spec refers to something that is not allowed",
            vec![Remedy::command(subject.kubectl("edit"))],
        ),
    }
}

fn workload(subject: &Subject<'_>, problem: WorkloadProblem) -> (&'static str, Vec<Remedy>) {
    let namespace = subject.namespace();
    let secret = subject.world.workload.cluster().secret_name.as_deref();
    let look = || {
        secret.map(|secret| Remedy::command(format!("kubectl get secret {} -n {namespace}", quoted(secret))))
    };
    let look_and = |words: &str| look().into_iter().chain([Remedy::advice(words)]).collect();
    match problem {
        WorkloadProblem::SecretMissing => (
            "the Secret with the kubeconfig of the workload cluster does not exist",
            look_and("let Cluster API write it, or name another with spec.kubeconfigSecretRef"),
        ),
        WorkloadProblem::SecretForbidden => (
            "the controller may not read the kubeconfig of the workload cluster",
            vec![Remedy::command(format!(
                "kubectl create rolebinding 5spot-kubeconfig-reader --clusterrole=5spot-kubeconfig-reader \
                 --serviceaccount=5spot-system:5spot-controller -n {namespace}"
            ))],
        ),
        WorkloadProblem::KubeconfigInvalid => (
            "the kubeconfig of the workload cluster is unusable",
            look_and("write a valid kubeconfig into it; the message says what is wrong with it"),
        ),
        WorkloadProblem::Refused => (
            "the workload cluster rejects the credentials of the kubeconfig",
            look_and("renew the credentials, and grant the rules in deploy/rbac-nodes there"),
        ),
        WorkloadProblem::Unreachable => (
            "the workload cluster does not answer",
            vec![
                clusters(subject),
                Remedy::advice("check its API server, and the network between the two clusters"),
            ],
        ),
        WorkloadProblem::WrongCluster => (
            "the kubeconfig refers to a different cluster than the one that contains the Node",
            look_and("restore the kubeconfig of the right cluster in the Secret"),
        ),
        WorkloadProblem::TooManyClusters => (
            "the controller is connected to as many workload clusters of the namespace as it may have",
            vec![
                Remedy::command(format!("kubectl get scheduledmachines -n {namespace}")),
                Remedy::advice(
                    "delete those that are not needed, or use another namespace for some clusters",
                ),
            ],
        ),
    }
}

/// A reference that is no fault at the moment, and will be one when the next Machine has to be created.
fn missing_reference(subject: &Subject<'_>) -> Option<Blocker> {
    let is_reference = |(status, reason, _): &(&str, &str, &str)| {
        *status == "False" && *reason != Reason::MachineInUse.as_str()
    };
    let condition = subject.condition(ConditionType::ReferencesValid).filter(is_reference)?;
    if subject.decision.fault.is_some() || !super::is_wanted(subject.decision.demand) {
        return None;
    }
    Some(blocker(
        "the next Machine cannot be created",
        vec![words(ConditionType::ReferencesValid, condition)],
        vec![clusters(subject)],
    ))
}

/// The last report of the controller, if it failed for a reason that a look from outside does not show.
fn failed_attempts(subject: &Subject<'_>) -> Option<Blocker> {
    let recorded = subject.recorded(ConditionType::Ready)?;
    if subject.decision.fault.is_some() || recorded.1 != Reason::ReconcileFailed.as_str() {
        return None;
    }
    Some(blocker(
        "the last attempts of the controller failed; it retries after 30 s, and then less often",
        vec![words(ConditionType::Ready, recorded)],
        vec![Remedy::command(format!(
            "{} 5spot.finos.org/force-reconcile=\"$(date -u +%s)\" --overwrite",
            subject.kubectl("annotate")
        ))],
    ))
}

/// The pods that still block a drain, and why.
fn blocked_pods(subject: &Subject<'_>) -> Vec<String> {
    let drain = subject.decision.status.drain.as_ref();
    let blocked = drain.into_iter().flat_map(|drain| &drain.blocked);
    blocked.map(|blocked| format!("pod {}: {}", blocked.pod, blocked.reason)).collect()
}

/// The pods that block a drain that is within its deadline.
fn drain(subject: &Subject<'_>) -> Option<Blocker> {
    let drain = subject.decision.status.drain.as_ref().filter(|drain| !drain.blocked.is_empty())?;
    // After the deadline they are evidence of the fault; a Machine that is being deleted takes them along.
    let has_timed_out =
        subject.decision.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::DrainTimedOut);
    let is_deleted = subject.world.machine.ours().is_none_or(|machine| machine.terminating);
    if has_timed_out || is_deleted || !matches!(subject.phase(), Phase::ShuttingDown | Phase::Error) {
        return None;
    }
    let evidence = blocked_pods(subject);
    let mut fix: Vec<Remedy> = Vec::new();
    if drain.blocked.iter().any(|blocked| blocked.reason.contains("disruption budget")) {
        fix.extend(in_workload_cluster(
            "in the workload cluster: start more replicas on other nodes, or lower minAvailable of the PodDisruptionBudget",
            "kubectl get poddisruptionbudgets -A".to_owned(),
        ));
    }
    let terminating = drain.blocked.iter().find(|blocked| blocked.reason.contains("terminating"));
    if let Some((namespace, pod)) = terminating.and_then(|blocked| blocked.pod.split_once('/')) {
        fix.extend(in_workload_cluster(
            "in the workload cluster: show the finalizers and containers that keep the pod",
            format!("5spot why {} -n {}", quoted(&format!("pod/{pod}")), quoted(namespace)),
        ));
    }
    Some(blocker(
        format!("{} of {} pods have left the node; the others block the drain", drain.evicted, drain.total),
        evidence,
        fix,
    ))
}

/// The objects of the last Machine, which have to be gone before another is created.
/// Another object that has the physical machine, or comes first when it is free; or that is lent it at the same time.
fn machine_in_use(subject: &Subject<'_>) -> Option<Blocker> {
    let kinds = [ConditionType::Ready, ConditionType::ReferencesValid];
    let (kind, condition) = kinds.into_iter().find_map(|kind| {
        let condition = subject.condition(kind)?;
        (condition.1 == Reason::MachineInUse.as_str()).then_some((kind, condition))
    })?;
    let claims = &subject.world.claims;
    let holder = match &claims.current {
        Claim::Taken { holder } => Some(holder),
        Claim::Free { waiters, .. } => first(waiters).map(|waiter| &waiter.object),
        Claim::NotNeeded | Claim::Unprotected | Claim::Unknown | Claim::Held(_) | Claim::Abandoned(_) => {
            claims.also_lent_by.as_ref()
        }
    };
    let look = holder.map(|other| {
        Remedy::command(format!("5spot explain {} -n {}", quoted(&other.name), quoted(&other.namespace)))
    });
    let advice = Remedy::advice(
        "wait until the other object has released the machine, or disable its schedule; if they are two \
         machines, correct the address, or set spec.machineIdentity of both",
    );
    Some(blocker(
        "another ScheduledMachine uses the same physical machine",
        vec![words(kind, condition)],
        look.into_iter().chain([advice]).collect(),
    ))
}

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
    let fix = vec![Remedy::command(format!(
        "5spot why machine.cluster.x-k8s.io/{} -n {namespace}",
        names::machine(name)
    ))];
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
    let machine = machine(subject);
    let describe = Remedy::command(format!("kubectl describe {machine}"));
    let provider_id = "-o jsonpath='{.spec.providerID}'";
    match &world.node {
        NodeFact::Found(node) => match node.readiness {
            Readiness::Ready => None,
            Readiness::NotReady | Readiness::Unreachable => Some(blocker(
                format!("node {} is not Ready", node.name),
                evidence,
                in_workload_cluster(
                    "in the workload cluster:",
                    format!("kubectl describe {}", target("node", node.name.as_str())),
                )
                .to_vec(),
            )),
        },
        NodeFact::NotYet | NodeFact::Gone => {
            let what = match condition.1 {
                "NodeLost" => "the node had joined and is gone",
                _ => "the node has not joined yet",
            };
            Some(blocker(what, evidence, vec![describe]))
        }
        NodeFact::Renamed(node) => Some(blocker(
            format!("the machine is in the cluster under another name, as node {}", node.name),
            evidence,
            in_workload_cluster(
                "in the workload cluster:",
                format!("kubectl describe {}", target("node", node.name.as_str())),
            )
            .to_vec(),
        )),
        NodeFact::Mismatch { name } => Some(blocker(
            format!("node {name} does not belong to the Machine"),
            evidence,
            [Remedy::command(format!("kubectl get {machine} {provider_id}"))]
                .into_iter()
                .chain(in_workload_cluster(
                    "in the workload cluster:",
                    format!("kubectl get {} {provider_id}", target("node", name.as_str())),
                ))
                .collect(),
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
        format!("node {node} still exists although its Machine is gone"),
        vec![words(ConditionType::MachineReady, condition)],
        in_workload_cluster(
            "in the workload cluster, once the owner has the machine back; pods on it are lost:",
            format!("kubectl delete {}", target("node", node)),
        )
        .to_vec(),
    ))
}

fn taints(subject: &Subject<'_>) -> Option<Blocker> {
    let condition = subject.condition(ConditionType::NodeTainted)?;
    let node = subject.world.node.found().map(|node| node.name.as_str());
    let fix = match condition.1 {
        "TaintOwnershipConflict" => node
            .into_iter()
            .flat_map(|node| {
                in_workload_cluster(
                    "in the workload cluster, to see the taints of the node:",
                    format!("kubectl get {} -o jsonpath='{{.spec.taints}}'", target("node", node)),
                )
            })
            .chain([Remedy::advice("change spec.nodeTaints, or remove the other taint from the node")])
            .collect(),
        "PatchFailed" => {
            vec![Remedy::advice("grant `patch` on nodes in the workload cluster (deploy/rbac-nodes)")]
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
    let last = subject.decision.status.reclaims.first();
    let reclaim = last.map(|record| {
        format!(
            "status.reclaims: requested at {} on node {}: {}",
            record.requested_at.0, record.node, record.reason
        )
    });
    let patch = |spec: &str| {
        Remedy::command(format!("{} --type=merge -p '{{\"spec\":{spec}}}'", subject.kubectl("patch")))
    };
    let with_consent = |command| vec![Remedy::advice("when the owner agrees:"), command];
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
        let resume = Remedy::command(format!(
            "{} --overwrite 5spot.finos.org/resume=\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\"",
            subject.kubectl("annotate")
        ));
        let what = "the owner reclaimed the machine, and nobody has allowed it to be lent again";
        return Some(blocker(what, reclaim.into_iter().collect(), with_consent(resume)));
    }
    if demand == Reason::EmergencyReclaimDisabledSchedule && subject.phase() == Phase::Disabled {
        let what = "the owner reclaimed the machine, and the schedule has been disabled since then";
        return Some(blocker(what, reclaim.into_iter().collect(), with_consent(enable)));
    }
    None
}
