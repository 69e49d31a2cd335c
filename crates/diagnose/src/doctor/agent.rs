//! The reclaim agent of a machine: its label, its configuration and its pod.

use super::agent_logs;
use super::controller::{failure, pod_words};
use super::facts::{AgentPod, WorkloadFacts};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{condition, label, list, name, number, text, time};
use super::logs::LogLine;
use super::machine::Case;
use crate::shell::{object as target, quoted};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::names::label::{RECLAIM_AGENT, RECLAIM_AGENT_ENABLED};
use five_spot_api::reclaim::{AgentConfig, CONFIG_KEY, config_map};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The time that the controller, the DaemonSet and the kubelet may take after a node has become Ready.
const SETTLED: SignedDuration = SignedDuration::from_mins(3);

/// Programs whose process name is written in lower case, and which people write with a capital.
const USUAL: [&str; 24] = [
    "java", "python", "python3", "node", "ruby", "perl", "steam", "firefox", "chrome", "chromium", "code",
    "blender", "gimp", "slack", "zoom", "teams", "idea", "eclipse", "studio", "matlab", "spotify", "discord",
    "ffmpeg", "make",
];

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let (Some(workload), Some(node)) = (case.workload, case.node) else { return };
    if case.machine.commands().is_empty() || case.machine.deleted_at().is_some() {
        return;
    }
    let is_settled = case
        .node_ready()
        .is_some_and(|(ready, since)| ready && since.is_none_or(|at| case.facts.since(at) > SETTLED));
    let is_kept = case.condition("Scheduled").is_some_and(|scheduled| scheduled.status == "True");
    if !is_settled || !is_kept {
        return;
    }
    if workload.agent_namespace == Some(Value::Null) {
        findings.push(no_namespace(case));
        return;
    }
    if label(node, RECLAIM_AGENT) == Some(RECLAIM_AGENT_ENABLED) {
        findings.extend(pod(case, workload));
    } else {
        findings.push(no_label(case));
    }
    findings.extend(config(case, workload));
}

/// Neither the agent nor its configuration has a place.
fn no_namespace(case: &Case<'_>) -> Finding {
    case.find(
        FindingId::AgentPodMissing,
        Severity::Error,
        "the reclaim agent is not installed in the workload cluster",
    )
    .cause("Programs of the owner do not trigger a reclaim, because no agent watches the processes of the machine.")
    .evidence(format!("the workload cluster has no namespace {SYSTEM_NAMESPACE}"))
    .evidence_of(case.condition("Ready").filter(|ready| ready.status == "False").map(|ready| ready.words()))
    .fix(Fix::command("kubectl apply -k deploy/node-agent/").in_workload_cluster(""))
}

fn no_label(case: &Case<'_>) -> Finding {
    let node = case.node_name();
    case.find(
        FindingId::AgentLabelMissing,
        Severity::Error,
        format!("node {node} lacks the label of the reclaim agent"),
    )
    .cause("Without it no agent runs there, and the owner's programs trigger no reclaim.")
    .evidence(format!("spec.killIfCommands is {:?}", case.machine.commands()))
    .evidence(format!("node {node} has no label {RECLAIM_AGENT}={RECLAIM_AGENT_ENABLED}"))
    .fix(
        Fix::command(format!(
            "kubectl label {} {RECLAIM_AGENT}={RECLAIM_AGENT_ENABLED} --overwrite",
            target("node", node)
        ))
        .in_workload_cluster("the controller sets it if it may patch nodes (deploy/rbac-nodes)"),
    )
}

/// The agent's pod on the node.
fn pod(case: &Case<'_>, workload: &WorkloadFacts) -> Option<Finding> {
    let node = case.node_name();
    let agents = workload.agents.as_ref()?;
    let here: Vec<&AgentPod> =
        agents.iter().filter(|agent| text(&agent.pod, "/spec/nodeName") == node).collect();
    if let Some(first) = here.first() {
        let works = here.iter().any(|agent| !is_down(case, agent));
        return (!works).then(|| down(case, first));
    }
    if let Some(found) = pod_security(case, workload) {
        return Some(found);
    }
    let sets = workload.daemon_sets.as_deref();
    let set = sets.and_then(<[Value]>::first);
    let words = set.map(|set| {
        format!(
            "DaemonSet {}: {} of {} pods are ready",
            name(set),
            number(set, "/status/numberReady").unwrap_or(0),
            number(set, "/status/desiredNumberScheduled").unwrap_or(0)
        )
    });
    let absent =
        sets.is_some_and(<[Value]>::is_empty).then(|| "there is no DaemonSet 5spot-reclaim-agent".to_owned());
    let fix = if absent.is_some() {
        Fix::command("kubectl apply -k deploy/node-agent/").in_workload_cluster("")
    } else {
        Fix::command(format!("kubectl describe daemonset 5spot-reclaim-agent -n {SYSTEM_NAMESPACE}"))
            .in_workload_cluster("its events say why there is no pod")
    };
    Some(
        case.find(
            FindingId::AgentPodMissing,
            Severity::Error,
            format!("no reclaim agent runs on node {node}"),
        )
        .cause("Programs of the owner do not trigger a reclaim, because no agent watches the processes of the machine.")
        .evidence(format!("no pod with the label app=5spot-reclaim-agent on node {node}"))
        .evidence_of(words)
        .evidence_of(absent)
        .fix(fix),
    )
}

/// True if an agent has had time to start and does not run, and its log does not say why: that has findings of its own.
fn is_down(case: &Case<'_>, agent: &AgentPod) -> bool {
    let is_long_ago = |at: Option<Timestamp>| at.is_none_or(|at| case.facts.since(at) > SETTLED);
    let has_not_started = matches!(text(&agent.pod, "/status/phase"), "Pending" | "Failed")
        && is_long_ago(time(&agent.pod, "/metadata/creationTimestamp"));
    let is_unready = condition(&agent.pod, "Ready")
        .is_some_and(|ready| ready["status"] == "False" && is_long_ago(time(ready, "/lastTransitionTime")));
    (failure(&agent.pod).is_some() || has_not_started || is_unready)
        && agent_logs::of_agent(&case.machine.workload(), agent).is_none()
}

fn down(case: &Case<'_>, agent: &AgentPod) -> Finding {
    let (node, pod) = (case.node_name(), name(&agent.pod));
    let title = format!("the reclaim agent on node {node} does not work");
    case.find(FindingId::AgentPodMissing, Severity::Error, title)
        .cause("Programs of the owner do not trigger a reclaim, because no agent watches the processes of the machine.")
        .evidence(pod_words(&agent.pod))
        .evidence_of(restarts(&agent.pod))
        .evidence_of(agent.log.last().map(LogLine::words))
        .fix(
            Fix::command(format!("kubectl describe {} -n {SYSTEM_NAMESPACE}", target("pod", pod)))
                .in_workload_cluster("its events say why it does not run"),
        )
        .fix(
            Fix::command(format!(
                "kubectl logs {} -n {SYSTEM_NAMESPACE} --tail=50",
                quoted(&format!("pod/{pod}"))
            ))
            .in_workload_cluster("its own words"),
        )
}

/// The namespace of the agents does not admit their pods.
fn pod_security(case: &Case<'_>, workload: &WorkloadFacts) -> Option<Finding> {
    let refusal = workload.agent_events.iter().find(|event| {
        let note = [text(event, "/note"), text(event, "/message")].concat();
        text(event, "/reason") == "FailedCreate" && note.contains("violates PodSecurity")
    });
    let enforced = workload
        .agent_namespace
        .as_ref()
        .and_then(|space| label(space, "pod-security.kubernetes.io/enforce"));
    let is_strict = enforced.is_some_and(|level| level != "privileged");
    if refusal.is_none() && !is_strict {
        return None;
    }
    let title = "Pod Security prevents the reclaim agent from starting";
    Some(
        case.find(FindingId::AgentBlockedByPodSecurity, Severity::Error, title)
            .cause("The agent uses the processes and the network of the host, which only the level \
                    `privileged` allows.")
            .evidence_of(refusal.map(|event| format!("event FailedCreate: {}{}", text(event, "/note"), text(event, "/message"))))
            .evidence_of(enforced.map(|level| {
                format!("namespace {SYSTEM_NAMESPACE} has pod-security.kubernetes.io/enforce={level}")
            }))
            .fix(
                Fix::command(format!(
                    "kubectl label namespace {SYSTEM_NAMESPACE} pod-security.kubernetes.io/enforce=privileged --overwrite"
                ))
                .in_workload_cluster("restrict who may create pods in that namespace")
                .risky(),
            ),
    )
}

/// The agent's `ConfigMap`.
fn config(case: &Case<'_>, workload: &WorkloadFacts) -> Option<Finding> {
    let configs = workload.agent_configs.as_ref()?;
    let map_name = config_map(case.node_name());
    let word = quoted(&map_name);
    let look = || {
        Fix::command(format!("kubectl get configmap {word} -n {SYSTEM_NAMESPACE} -o yaml"))
            .in_workload_cluster("")
    };
    let renew = || {
        Fix::command(format!("kubectl delete configmap {word} -n {SYSTEM_NAMESPACE}"))
            .in_workload_cluster("the controller writes it again from spec.killIfCommands")
    };
    let Some(map) = configs.get(&map_name) else {
        return Some(
            case.find(
                FindingId::AgentConfigMissing,
                Severity::Error,
                "the reclaim agent has no configuration",
            )
            .cause("Without its ConfigMap the agent is idle.")
            .evidence(format!("there is no ConfigMap {SYSTEM_NAMESPACE}/{map_name}"))
            .fix(
                Fix::command(format!(
                    "{} 5spot.finos.org/force-reconcile=\"$(date -u +%s)\" --overwrite",
                    case.kubectl("annotate")
                ))
                .because("the controller writes it, if it may (deploy/rbac-nodes)"),
            )
            .fix(
                Fix::command(format!("kubectl get configmaps -n {SYSTEM_NAMESPACE}")).in_workload_cluster(""),
            ),
        );
    };
    let toml = map["data"][CONFIG_KEY].as_str();
    let found =
        |id, severity, title: &str| case.find(id, severity, title).evidence(format!("ConfigMap {map_name}"));
    let parsed = match toml.map(AgentConfig::parse) {
        None => {
            return Some(
                found(
                    FindingId::AgentConfigInvalid,
                    Severity::Error,
                    "the configuration of the reclaim agent lacks its key",
                )
                .cause("The agent keeps its last configuration, or stays idle.")
                .evidence(format!("data has no key {CONFIG_KEY}"))
                .fix(look())
                .fix(renew()),
            );
        }
        Some(Err(error)) => {
            return Some(
                found(
                    FindingId::AgentConfigInvalid,
                    Severity::Error,
                    "the configuration of the reclaim agent cannot be read",
                )
                .cause("The agent keeps its last configuration, or stays idle.")
                .evidence(format!("{CONFIG_KEY}: {error}"))
                .fix(look().in_workload_cluster("correct the line"))
                .fix(renew()),
            );
        }
        Some(Ok(parsed)) => parsed,
    };
    if !parsed.unknown_keys.is_empty() {
        return Some(
            found(
                FindingId::AgentConfigInvalid,
                Severity::Warning,
                "the configuration of the reclaim agent has unknown keys",
            )
            .cause("They have no effect: they are misspelled, or belong to a later version.")
            .evidence(format!("{CONFIG_KEY}: unknown keys {}", parsed.unknown_keys.join(", ")))
            .fix(look())
            .fix(renew()),
        );
    }
    if parsed.config.is_inert() {
        return Some(
            found(
                FindingId::AgentConfigEmpty,
                Severity::Error,
                "the configuration of the reclaim agent matches nothing",
            )
            .cause(
                "Both match lists are empty, although spec.killIfCommands is not: the agent is armed but \
                 inert.",
            )
            .evidence(format!("spec.killIfCommands is {:?}", case.machine.commands()))
            .fix(renew()),
        );
    }
    case_mismatch(case, &parsed.config.match_commands)
}

/// Patterns that differ from a usual process name only in their case.
fn case_mismatch(case: &Case<'_>, patterns: &[String]) -> Option<Finding> {
    let odd: Vec<(&String, String)> = patterns
        .iter()
        .map(|pattern| (pattern, pattern.to_ascii_lowercase()))
        .filter(|(pattern, lower)| *pattern != lower && USUAL.contains(&lower.as_str()))
        .collect();
    if odd.is_empty() {
        return None;
    }
    let corrected: Vec<String> = case
        .machine
        .commands()
        .into_iter()
        .map(|command| {
            let lower = command.to_ascii_lowercase();
            if USUAL.contains(&lower.as_str()) { lower } else { command.to_owned() }
        })
        .collect();
    let fix = case.patch(&json!({"killIfCommands": corrected}));
    Some(
        case.find(
            FindingId::AgentCaseMismatch,
            Severity::Warning,
            "a pattern does not match because of its case",
        )
        .cause("Process names are compared exactly, and these programs are called in lower case.")
        .evidence_of(
            odd.iter()
                .map(|(pattern, lower)| format!("`{pattern}` does not match a process called `{lower}`")),
        )
        .fix(Fix::command(fix)),
    )
}

/// The names of the containers' restarts and states of a pod, for evidence.
pub(super) fn restarts(pod: &Value) -> Option<String> {
    let status = list(pod, "/status/containerStatuses").first()?;
    let count = status["restartCount"].as_i64().filter(|count| *count > 0)?;
    let waiting = status["state"]["waiting"]["reason"].as_str().unwrap_or("running");
    Some(format!("pod {}: {count} restarts, {waiting}", name(pod)))
}

/// The command that makes the agents poll.
pub(super) fn poll() -> Fix {
    Fix::command(format!(
        "kubectl set env daemonset/5spot-reclaim-agent -n {SYSTEM_NAMESPACE} RECLAIM_DETECTOR=poll"
    ))
    .in_workload_cluster("finds the same programs within 250 ms, without process events")
}
