//! The program: is it there, is it ready, does it lead?

use super::facts::{ClusterApi, ControllerPod, CrdState, DoctorFacts, Lease};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, list, name, number, text, time, words};
use crate::object::ReportedObject;
use jiff::SignedDuration;
use serde_json::Value;

/// The time that a pod may take to start and to become ready.
const START: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn judge(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    findings.extend(not_running(facts));
    let begin = findings.len();
    for pod in facts.pods() {
        findings.extend(not_ready(facts, pod));
    }
    if findings.len() == begin {
        findings.extend(no_leader(facts));
    }
}

fn deployment(facts: &DoctorFacts) -> ReportedObject {
    let owners = facts.controller.owners.as_deref().unwrap_or_default();
    let (kind, name) = owners.first().map_or(("Deployment", "5spot-controller"), |owner| {
        let kind = if text(owner, "/kind").is_empty() { "Deployment" } else { text(owner, "/kind") };
        (kind, name(owner))
    });
    ReportedObject::namespaced(kind, &facts.controller.namespace, name)
}

fn is_running(pod: &Value) -> bool {
    text(pod, "/status/phase") == "Running" && text(pod, "/metadata/deletionTimestamp").is_empty()
}

/// True if an object was made a moment ago.
fn is_new(facts: &DoctorFacts, object: &Value) -> bool {
    time(object, "/metadata/creationTimestamp").is_some_and(|created| facts.since(created) < START)
}

/// True if a pod was made a moment ago, and nothing says that it will not start.
fn is_starting(facts: &DoctorFacts, pod: &Value) -> bool {
    let is_pending = matches!(text(pod, "/status/phase"), "" | "Pending");
    is_pending && is_new(facts, pod) && failure(pod).is_none()
}

/// True if a pod has just started: it acquires its Lease in a moment.
fn has_just_started(facts: &DoctorFacts) -> bool {
    let started = |pod: &ControllerPod| time(&pod.pod, "/status/startTime");
    facts.pods().iter().filter_map(started).any(|at| facts.since(at) < START)
}

/// No pod of the controller runs, and nothing else shows that one works elsewhere.
fn not_running(facts: &DoctorFacts) -> Option<Finding> {
    let pods = facts.controller.pods.as_deref()?;
    if pods.iter().any(|pod| is_running(&pod.pod)) {
        return None;
    }
    let is_held = |lease: &Lease| lease.name.starts_with("5spot-") && lease.is_held(facts.now);
    let lease = facts.controller.leases.iter().flatten().any(is_held);
    let owners = facts.controller.owners.as_deref().unwrap_or_default();
    let wants_none =
        !owners.is_empty() && owners.iter().all(|owner| number(owner, "/spec/replicas") == Some(0));
    let is_starting = pods.iter().any(|pod| is_starting(facts, &pod.pod))
        || (pods.is_empty() && !wants_none && owners.iter().any(|owner| is_new(facts, owner)));
    if is_starting {
        return None;
    }
    let neglected = facts.neglected.iter().map(|object| format!("no controller has acted on {object}"));
    let is_installed = !owners.is_empty() || !pods.is_empty();
    let has_objects = facts.known.as_ref().is_some_and(|known| !known.is_empty());
    let is_served = (has_objects && facts.neglected.is_empty()) || (!has_objects && facts.works_elsewhere);
    let works_elsewhere = lease || (!is_installed && is_served);
    if works_elsewhere {
        return None;
    }
    // Without any object nothing shows whether one runs outside of the cluster.
    let severity = if is_installed || has_objects { Severity::Error } else { Severity::Warning };
    let (object, namespace) = (deployment(facts), &facts.controller.namespace);
    let (kind, target) = (object.kind.to_lowercase(), object.name.clone());
    let fix = if wants_none {
        Fix::command(format!("kubectl scale {kind} {target} -n {namespace} --replicas=1"))
    } else if is_installed {
        Fix::command(format!("kubectl describe pods -n {namespace} -l app=5spot-controller"))
            .because("the events of the pod say why it does not run")
    } else {
        Fix::command("kubectl apply -k deploy/single/")
            .because("with the images of your registry: docs/install.md")
    };
    let states = pods.iter().map(|pod| pod_words(&pod.pod));
    let replicas = owners.iter().map(|owner| {
        let wanted = number(owner, "/spec/replicas").unwrap_or(1);
        let ready = number(owner, "/status/readyReplicas").unwrap_or(0);
        format!("{} {}: {ready} of {wanted} replicas are ready", text(owner, "/kind"), name(owner))
    });
    let none = pods
        .is_empty()
        .then(|| format!("no pod with the label app=5spot-controller in namespace {namespace}"));
    Some(
        Finding::new(FindingId::ControllerNotRunning, severity, object, "the controller does not run")
            .cause("Without it no machine is created and none is returned.")
            .evidence_of(none.into_iter().chain(replicas).chain(states).chain(neglected.take(3)))
            .fix(fix),
    )
}

/// `pod a is Pending: ImagePullBackOff (...)`.
pub(super) fn pod_words(pod: &Value) -> String {
    let waiting = failure(pod).or_else(|| {
        list(pod, "/status/containerStatuses").iter().find_map(|status| {
            let terminated = &status["lastState"]["terminated"];
            let waiting = status["state"]["waiting"]["reason"].as_str();
            let reason = waiting.or_else(|| terminated["reason"].as_str())?;
            Some(format!("{reason} {}", terminated["message"].as_str().unwrap_or_default()))
        })
    });
    let waiting = waiting.map(|words| format!(": {}", words.trim_end())).unwrap_or_default();
    let ending = if text(pod, "/metadata/deletionTimestamp").is_empty() { "" } else { " and being deleted" };
    format!("pod {} is {}{ending}{waiting}", name(pod), text(pod, "/status/phase"))
}

/// `CrashLoopBackOff back-off 5m0s (its last exit code was 2)`: a container does not run, and is not just being made.
pub(super) fn failure(pod: &Value) -> Option<String> {
    list(pod, "/status/containerStatuses").iter().find_map(|status| {
        let waiting = &status["state"]["waiting"];
        let reason = waiting["reason"].as_str()?;
        if matches!(reason, "ContainerCreating" | "PodInitializing") {
            return None;
        }
        let message = waiting["message"].as_str().unwrap_or_default();
        let code = status["lastState"]["terminated"]["exitCode"].as_i64();
        let ended = code.map(|code| format!(" (its last exit code was {code})")).unwrap_or_default();
        Some(format!("{reason} {message}{ended}"))
    })
}

/// True if another finding names the cause of an obstacle.
fn is_explained(facts: &DoctorFacts, line: &str) -> bool {
    let crd = line.contains("the CRD scheduledmachines") && facts.definition != CrdState::Fits;
    let capi = facts.cluster_api == ClusterApi::Missing
        && (line.contains("machines") || line.contains("clusters") || line.contains("Cluster API"));
    let watch = super::program::is_about_a_watch(line);
    line.contains("not allowed to ") || crd || capi || watch
}

fn not_ready(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    if !is_running(&pod.pod) {
        return None;
    }
    let started = time(&pod.pod, "/status/startTime");
    if started.is_some_and(|started| facts.since(started) < START) {
        return None;
    }
    let ready = condition(&pod.pod, "Ready");
    let (is_ready, lines) = match (&pod.readiness, ready) {
        (Some(readiness), _) => (readiness.is_ready, readiness.lines.as_slice()),
        (None, Some(ready)) => (ready["status"] == "True", &[][..]),
        (None, None) => return None,
    };
    let unexplained: Vec<&String> = lines.iter().filter(|line| !is_explained(facts, line)).collect();
    if is_ready || (!lines.is_empty() && unexplained.is_empty()) {
        return None;
    }
    let namespace = &facts.controller.namespace;
    let object = ReportedObject::namespaced("Pod", namespace, name(&pod.pod));
    let failure = failure(&pod.pod);
    let (cause, which, because) = match &failure {
        Some(_) => ("It keeps restarting.", " --previous", "the end of its log says why it has ended"),
        None => ("It runs but is not ready.", "", "it becomes ready by itself when the cause is gone"),
    };
    Some(
        Finding::new(FindingId::ControllerNotReady, Severity::Error, object, "the controller is not ready")
            .cause(cause)
            .evidence_of(unexplained.iter().map(|line| format!("/ready: {line}")))
            .evidence_of(failure.as_ref().map(|_| pod_words(&pod.pod)))
            .evidence_of(ready.map(words))
            .fix(
                Fix::command(format!("kubectl logs -n {namespace} {}{which} --tail=50", name(&pod.pod)))
                    .because(because),
            ),
    )
}

/// Leader election is on, several instances share the machines, and nobody leads one of the shards. The others do not take over
/// its machines.
fn leaderless_shard(facts: &DoctorFacts, pod: &ControllerPod, leases: &[&Lease]) -> Option<Finding> {
    let (prefix, shards) = (&pod.config.lease_name, pod.config.instances);
    let held = |shard: u32| {
        let name = format!("{prefix}-{shard}");
        leases.iter().any(|lease| lease.name == name && lease.is_held(facts.now))
    };
    let vacant: Vec<String> =
        (0..shards).filter(|shard| !held(*shard)).map(|id| format!("{prefix}-{id}")).collect();
    // None at all is told by the metrics as well.
    if shards < 2 || vacant.is_empty() || vacant.len() == shards as usize {
        return None;
    }
    let words = vacant.iter().map(|name| match leases.iter().find(|lease| lease.name == *name) {
        Some(lease) => lease_words(lease),
        None => format!("there is no Lease {name}"),
    });
    let object = ReportedObject::namespaced("Lease", &facts.controller.namespace, vacant.first()?);
    let title = format!("{} of {shards} shards have no leader", vacant.len());
    Some(
        Finding::new(FindingId::NoLeader, Severity::Error, object, title)
            .cause(
                "No instance works on the machines of such a shard, and the other instances do not take them \
                 over.",
            )
            .evidence_of(words)
            .fix(
                Fix::command(format!(
                    "kubectl get pods -n {} -l app=5spot-controller",
                    facts.controller.namespace
                ))
                .because("each shard needs an instance that runs"),
            ),
    )
}

/// `Lease 5spot-leader is held by "a" and was renewed 2026-11-16T11:00:00Z`.
fn lease_words(lease: &Lease) -> String {
    let renewed = lease.renewed.map_or_else(|| "never".to_owned(), |at| at.to_string());
    format!("Lease {} is held by \"{}\" and was renewed {renewed}", lease.name, lease.holder)
}

/// Leader election is on, and nobody leads.
fn no_leader(facts: &DoctorFacts) -> Option<Finding> {
    let pods: Vec<&ControllerPod> = facts.pods().iter().filter(|pod| is_running(&pod.pod)).collect();
    let electing = pods.iter().find(|pod| pod.config.leader_election)?;
    if has_just_started(facts) {
        return None;
    }
    let said: Vec<f64> =
        pods.iter().filter_map(|pod| pod.scrapes.as_ref()?.second.value("fivespot_is_leader")).collect();
    let wanted = &electing.config.lease_name;
    let leases: Vec<&Lease> = facts
        .controller
        .leases
        .as_deref()?
        .iter()
        .filter(|lease| {
            let rest = lease.name.strip_prefix(wanted.as_str());
            let is_shard = |rest: &str| rest.strip_prefix('-').is_some_and(|id| id.parse::<u32>().is_ok());
            rest.is_some_and(|rest| rest.is_empty() || is_shard(rest))
        })
        .collect();
    if let Some(found) = leaderless_shard(facts, electing, &leases) {
        return Some(found);
    }
    let vacant: Vec<&&Lease> = leases.iter().filter(|lease| !lease.is_held(facts.now)).collect();
    // The Lease of a leader that has just gone is held until it expires, and then taken over. That of a layout which is no
    // longer used stays, and nobody renews it.
    if vacant.len() < leases.len() || said.iter().any(|leads| *leads > 0.5) {
        return None;
    }
    let object = ReportedObject::namespaced("Lease", &facts.controller.namespace, wanted);
    let words = vacant.iter().map(|lease| lease_words(lease));
    let absent = leases.is_empty().then(|| format!("there is no Lease {wanted}"));
    let pod = name(&electing.pod);
    Some(
        Finding::new(FindingId::NoLeader, Severity::Error, object, "no instance of the controller leads")
            .cause("Leader election is on, and no instance holds the Lease: nothing is changed until one does.")
            .evidence_of(words.chain(absent))
            .evidence_of(said.iter().map(|value| format!("fivespot_is_leader {value}")))
            .fix(
                Fix::command(format!("kubectl logs -n {} {pod} --tail=50", facts.controller.namespace))
                    .because("the log says why the Lease cannot be written; it needs the role in deploy/ha/rbac.yaml"),
            ),
    )
}
