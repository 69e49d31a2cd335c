//! The references of a machine, and the obstacles to its creation.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, list, text, time, words};
use super::machine::{Case, Recorded, minutes};
use crate::shell::quoted;
use five_spot_api::names;
use jiff::SignedDuration;
use serde_json::json;

/// The time that a provider may take before it is worth a look. Machines boot for minutes.
const PROVIDER: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let begin = findings.len();
    findings.extend(not_ready(case));
    if findings.len() == begin {
        findings.extend(unusable_workload(case));
        findings.extend(provider(case));
    }
}

/// The finding for the reason for which the object is not where it should be.
fn not_ready(case: &Case<'_>) -> Option<Finding> {
    let ready = case.condition("Ready").filter(|ready| ready.status == "False")?;
    match ready.reason {
        "InvalidSpec" if case.reason("Scheduled") != "InvalidSchedule" => Some(invalid_spec(case, ready)),
        "NotAllowed" => Some(invalid_spec(case, ready)),
        "NotFound" if is_about_kubeconfig(ready.message) => Some(kubeconfig(case, ready)),
        "NotFound" => Some(not_found(case, ready)),
        "Forbidden" if is_about_workload(ready.message) => Some(kubeconfig(case, ready)),
        "Forbidden" => Some(forbidden(case, ready)),
        "KubeconfigInvalid" | "Unreachable" => Some(kubeconfig(case, ready)),
        "WrongCluster" => Some(wrong_cluster(case, ready)),
        "NameTaken" => Some(name_taken(case, ready)),
        "JoinFailed" => Some(join_failed(case, ready)),
        "MachineInUse" => Some(in_use(case, ready, Severity::Warning)),
        "ReconcileFailed" => failed(case, ready),
        _ => double_loan(case),
    }
}

/// Two objects hold the same machine already.
fn double_loan(case: &Case<'_>) -> Option<Finding> {
    let references =
        case.condition("ReferencesValid").filter(|references| references.reason == "MachineInUse")?;
    Some(in_use(case, references, Severity::Error))
}

fn invalid_spec(case: &Case<'_>, ready: Recorded<'_>) -> Finding {
    case.find(
        FindingId::ReferenceNotFound,
        Severity::Error,
        "the spec asks for something that is not allowed",
    )
    .cause("The controller has rejected a field of the spec.")
    .evidence(ready.words())
    .fix(Fix::command(case.kubectl("edit")).because("the message names the field and what is allowed"))
}

fn not_found(case: &Case<'_>, ready: Recorded<'_>) -> Finding {
    let namespace = case.machine.namespace();
    let cluster = text(&case.machine.object, "/spec/clusterName");
    case.find(
        FindingId::ReferenceNotFound,
        Severity::Error,
        "an object that the spec refers to does not exist",
    )
    .cause("The machine is created as soon as it exists.")
    .evidence(ready.words())
    .fix(
        Fix::command(format!("kubectl get clusters.cluster.x-k8s.io -n {namespace}"))
            .because(format!("spec.clusterName is {cluster}; create that Cluster, or name another")),
    )
    .fix(
        Fix::command("kubectl api-resources --api-group=infrastructure.cluster.x-k8s.io")
            .because("missing kinds are installed with their provider: clusterctl init --infrastructure ..."),
    )
}

fn forbidden(case: &Case<'_>, ready: Recorded<'_>) -> Finding {
    let namespace = case.machine.namespace();
    let found = case
        .find(
            FindingId::RbacMissing,
            Severity::Error,
            "the controller lacks a permission that this machine needs",
        )
        .cause("A rule or a binding of the controller's service account is missing.")
        .evidence(ready.words());
    if ready.message.contains("Secret ") {
        return found.fix(Fix::command(format!(
            "kubectl create rolebinding 5spot-kubeconfig-reader --clusterrole=5spot-kubeconfig-reader \
             --serviceaccount={}:5spot-controller --namespace={namespace}",
            case.facts.controller.namespace
        )));
    }
    found.fix(Fix::note(
        "grant the rule that the message names, in a ClusterRole with the label \
         5spot.finos.org/aggregate-to-controller: \"true\"",
    ))
}

/// True if the kubeconfig itself is missing.
fn is_about_kubeconfig(message: &str) -> bool {
    message.starts_with("there is no Secret")
}

/// True if the workload cluster has refused the credentials.
fn is_about_workload(message: &str) -> bool {
    message.starts_with("the Nodes of the workload cluster")
}

fn kubeconfig(case: &Case<'_>, condition: Recorded<'_>) -> Finding {
    let key = case.machine.workload();
    let namespace = &key.namespace;
    let found = case
        .find(
            FindingId::KubeconfigUnusable,
            Severity::Error,
            "the kubeconfig of the workload cluster cannot be used",
        )
        .cause("The controller can neither see nor drain the Node. It does not fall back to another cluster.")
        .evidence(condition.words());
    let look = Fix::command(match &key.secret {
        Some(secret) => format!("kubectl get secret {} -n {namespace}", quoted(secret)),
        None => format!("kubectl get secrets -n {namespace}"),
    });
    match condition.reason {
        "NotFound" => found.fix(look.because(
            "Cluster API writes it when the control plane is up; spec.kubeconfigSecretRef names another",
        )),
        "Unreachable" => found
            .fix(Fix::command(format!("kubectl get clusters.cluster.x-k8s.io -n {namespace}")))
            .fix(Fix::note("check the API server of the workload cluster, and the network between the two")),
        "Forbidden" => found.fix(Fix::note(
            "renew the credentials in the Secret, and grant the rules of deploy/rbac-nodes in the workload cluster",
        )),
        _ => found.fix(look.because("write a valid kubeconfig into it; the message says what is wrong with it")),
    }
}

fn wrong_cluster(case: &Case<'_>, condition: Recorded<'_>) -> Finding {
    let key = case.machine.workload();
    let secret = quoted(key.secret.as_deref().unwrap_or_default());
    case.find(
        FindingId::WrongCluster,
        Severity::Error,
        "the kubeconfig refers to a different cluster than before",
    )
    .cause(
        "The Node was last seen in a cluster with another identity. The controller changes neither of them.",
    )
    .evidence(condition.words())
    .fix(
        Fix::command(format!("kubectl get secret {secret} -n {} -o yaml", key.namespace))
            .because("restore the kubeconfig of the cluster that contains the Node"),
    )
    .fix(
        Fix::command(case.patch(&json!({"killSwitch": true})))
            .because("if that cluster is gone for good: deletes the Machine without a drain")
            .risky(),
    )
}

fn name_taken(case: &Case<'_>, ready: Recorded<'_>) -> Finding {
    let (namespace, name) = (case.machine.namespace(), case.machine.name());
    case.find(
        FindingId::NameTaken,
        Severity::Error,
        "an object that 5-Spot did not create has a name that 5-Spot needs",
    )
    .cause("5-Spot never changes objects that it did not create.")
    .evidence(ready.words())
    .fix(Fix::command(format!(
        "kubectl get machines.cluster.x-k8s.io {} -n {namespace} -o yaml",
        names::machine(name)
    )))
    .fix(
        Fix::note("give the ScheduledMachine another name, or delete the other object if nobody needs it")
            .risky(),
    )
}

fn join_failed(case: &Case<'_>, ready: Recorded<'_>) -> Finding {
    let (namespace, machine) = (case.machine.namespace(), names::machine(case.machine.name()));
    let capi = case.capi.into_iter().flat_map(|capi| list(capi, "/status/conditions"));
    let unready = capi.filter(|condition| condition["status"] == "False").map(words);
    let given = case.machine.spec.as_ref().map_or(SignedDuration::ZERO, |spec| spec.join_timeout);
    let longer = minutes((given * 2).max(SignedDuration::from_mins(40)));
    case.find(FindingId::JoinFailed, Severity::Error, "the node did not become Ready within joinTimeout")
        .cause("The controller deletes the Machine, and creates another one five minutes later.")
        .evidence(ready.words())
        .evidence_of(unready)
        .fix(Fix::command(format!("kubectl describe machines.cluster.x-k8s.io {machine} -n {namespace}")))
        .fix(Fix::note("look at the machine: power, network, disk, the log of its kubelet"))
        .fix(
            Fix::command(case.patch(&json!({"joinTimeout": longer})))
                .because("if the machine only needs longer"),
        )
}

fn in_use(case: &Case<'_>, condition: Recorded<'_>, severity: Severity) -> Finding {
    let title = "another object uses the same physical machine";
    let mut found = case
        .find(FindingId::MachineInUse, severity, title)
        .cause("A physical machine is lent to one cluster at a time; the message names the holder.")
        .evidence(condition.words());
    if let Some((namespace, name)) = holder(condition.message) {
        found = found.fix(
            Fix::command(format!("5spot explain {} -n {}", quoted(name), quoted(namespace)))
                .because("says until when the other object has the machine"),
        );
    }
    found
        .fix(Fix::note("wait until the other object has released the machine, or disable its schedule"))
        .fix(Fix::note("if they are two machines: correct the address, or set spec.machineIdentity of both"))
}

/// The holder in a message such as `waiting for the physical machine, which ScheduledMachine desks/desk-1 uses` or
/// `ScheduledMachine desks/desk-1 is lent the same physical machine`.
fn holder(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("ScheduledMachine ")?;
    let (namespace, name) = rest.split(' ').next()?.split_once('/')?;
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (is_name(namespace) && is_name(name)).then_some((namespace, name))
}

/// Reconciles that fail for another reason.
fn failed(case: &Case<'_>, ready: Recorded<'_>) -> Option<Finding> {
    // The taints have findings of their own.
    if case.reason("NodeTainted") == "PatchFailed" {
        return None;
    }
    // So has an agent for whose configuration there is no namespace.
    let no_place =
        case.workload.is_some_and(|workload| workload.agent_namespace == Some(serde_json::Value::Null));
    if no_place && ready.message.contains("apply ConfigMap ") {
        return None;
    }
    let evidence = [Some(ready.words()), case.log("requeuing with exponential back-off"), retries(case)];
    let again = Fix::command(format!(
        "{} 5spot.finos.org/force-reconcile=\"$(date -u +%s)\" --overwrite",
        case.kubectl("annotate")
    ))
    .because("retries at once, when the cause is gone");
    if ready.message.contains("CAPI operation failed: apply ") {
        return Some(
            case.find(
                FindingId::MachineCreationFailed,
                Severity::Error,
                "the objects of the machine cannot be created",
            )
            .cause("The API server, or a webhook of Cluster API or the provider, refuses them.")
            .evidence_of(evidence.into_iter().flatten())
            .fix(Fix::command(case.kubectl("edit")).because(
                "correct bootstrapSpec or infrastructureSpec: the message is that of the API server",
            ))
            .fix(Fix::command("kubectl logs -n capi-system -l control-plane=controller-manager --tail=50"))
            .fix(again),
        );
    }
    Some(
        case.find(FindingId::BackingOff, Severity::Error, "reconciles of this machine fail")
            .cause("The controller retries after 30, 60, 120, 240 and then every 300 seconds.")
            .evidence_of(evidence.into_iter().flatten())
            .fix(Fix::note(
                "the message names the request that fails; the controller recovers when it succeeds",
            ))
            .fix(again),
    )
}

/// The retries, from the series of the event `ReconcileFailed`.
fn retries(case: &Case<'_>) -> Option<String> {
    let event = case.index.failure(case.machine.namespace(), case.machine.name())?;
    let count = event["series"]["count"].as_i64().unwrap_or(1);
    Some(format!("event ReconcileFailed ({count} times): {}", text(event, "/note")))
}

/// The workload cluster of a machine that is otherwise fine.
fn unusable_workload(case: &Case<'_>) -> Option<Finding> {
    let ready = case.condition("MachineReady").filter(|ready| ready.status == "Unknown")?;
    match ready.reason {
        "WrongCluster" => Some(wrong_cluster(case, ready)),
        "KubeconfigInvalid" | "Unreachable" | "NotFound" | "Forbidden"
            if case.facts.since(ready.since) > SignedDuration::from_mins(2) =>
        {
            Some(kubeconfig(case, ready))
        }
        _ => None,
    }
}

/// A provider that does not get on.
fn provider(case: &Case<'_>) -> Option<Finding> {
    let capi = case.capi.filter(|capi| text(capi, "/metadata/deletionTimestamp").is_empty())?;
    let created = time(capi, "/metadata/creationTimestamp")?;
    if case.facts.since(created) < PROVIDER || !text(capi, "/status/nodeRef/name").is_empty() {
        return None;
    }
    let unready: Vec<String> = ["InfrastructureReady", "BootstrapConfigReady", "BootstrapReady"]
        .into_iter()
        .filter_map(|kind| condition(capi, kind))
        .filter(|condition| condition["status"] != "True")
        .map(words)
        .collect();
    if unready.is_empty() {
        return None;
    }
    let (namespace, machine) = (case.machine.namespace(), names::machine(case.machine.name()));
    // With its group: several providers may have a kind of that name.
    let spec = |field: &str| text(&case.machine.object, &format!("/spec/infrastructureSpec/{field}"));
    let group = spec("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = quoted(&format!("{}.{group}", spec("kind").to_lowercase()));
    Some(
        case.find(
            FindingId::ProviderNotReady,
            Severity::Warning,
            "the provider has not made the machine ready",
        )
        .cause(format!(
            "Machine {machine} has waited for its provider for {} minutes.",
            case.facts.since(created).as_mins()
        ))
        .evidence_of(unready)
        .fix(Fix::command(format!(
            "kubectl describe {kind} {} -n {namespace}",
            names::infrastructure(case.machine.name())
        )))
        .fix(
            Fix::command("kubectl get pods -A -l cluster.x-k8s.io/provider")
                .because("the controllers of Cluster API and of the provider must be running"),
        ),
    )
}
