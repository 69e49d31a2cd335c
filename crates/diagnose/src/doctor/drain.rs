//! Drains that do not get on. A drain that is blocked for a while is nothing unusual: replacements have to start first.

use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{list, name, namespace, number, text, time};
use super::machine::{Case, minutes};
use crate::shell::{object as target, quoted};
use five_spot_api::{BlockedPod, DrainStatus, Phase};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The time after its grace period for which a pod may still be seen.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn judge(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let status = &case.machine.status;
    let is_overdue = case.reason("Ready") == "DrainTimedOut";
    let is_draining = status.phase == Some(Phase::ShuttingDown) || is_overdue;
    let Some(drain) = status.drain.as_ref().filter(|drain| is_draining && drain.evicted < drain.total) else {
        if is_overdue {
            findings.push(overdue(case, &[]));
        }
        return;
    };
    let window = Window::of(case, drain);
    let severity = window.severity(case, is_overdue);
    let begin = findings.len();
    findings.extend(budgets(case, drain, severity));
    findings.extend(stuck_pods(case, drain));
    if findings.len() == begin {
        findings.extend(long_grace(case, drain, &window, is_overdue));
    }
    if findings.len() == begin && is_overdue {
        let blocked: Vec<String> =
            drain.blocked.iter().map(|pod| format!("pod {}: {}", pod.pod, pod.reason)).collect();
        findings.push(overdue(case, &blocked));
    }
}

/// The time that a drain may take.
struct Window {
    started: Timestamp,
    deadline: Timestamp,
}

impl Window {
    fn of(case: &Case<'_>, drain: &DrainStatus) -> Self {
        let started = case.machine.status.shutdown_started_at.as_ref().unwrap_or(&drain.started_at).0;
        let allowed = case.machine.spec.as_ref().map_or(SignedDuration::from_mins(5), |spec| {
            spec.handling.graceful_shutdown_timeout.min(spec.handling.node_drain_timeout)
        });
        Self { started, deadline: started.saturating_add(allowed).unwrap_or(Timestamp::MAX) }
    }

    /// The weight of something that blocks the drain: more than half of the time gone is worth a warning.
    fn severity(&self, case: &Case<'_>, is_overdue: bool) -> Severity {
        let (gone, all) = (case.facts.since(self.started), self.deadline.duration_since(self.started));
        if is_overdue {
            Severity::Error
        } else if gone > all / 2 {
            Severity::Warning
        } else {
            Severity::Info
        }
    }
}

fn split(pod: &str) -> (&str, &str) {
    pod.split_once('/').unwrap_or(("", pod))
}

fn kill(case: &Case<'_>) -> Fix {
    Fix::command(case.patch(&json!({"killSwitch": true})))
        .because(
            "returns the machine now; the pods on it are lost, and it is not lent again until the kill \
             switch is false",
        )
        .risky()
}

fn budgets(case: &Case<'_>, drain: &DrainStatus, severity: Severity) -> Option<Finding> {
    let blocked: Vec<&str> = drain
        .blocked
        .iter()
        .filter(|pod| pod.reason.contains("disruption budget"))
        .map(|pod| pod.pod.as_str())
        .collect();
    if blocked.is_empty() {
        return None;
    }
    let all = case.workload.map(|workload| workload.budgets.as_slice()).unwrap_or_default();
    let tight: Vec<&Value> = all
        .iter()
        .filter(|budget| number(budget, "/status/disruptionsAllowed") == Some(0))
        .filter(|budget| blocked.iter().any(|pod| split(pod).0 == namespace(budget)))
        .filter(|budget| selects_one(case, budget, &blocked))
        .collect();
    let words = tight.iter().map(|budget| {
        format!(
            "PodDisruptionBudget {}/{}: 0 disruptions allowed, {} of {} pods healthy, minAvailable {}, maxUnavailable {}",
            namespace(budget),
            name(budget),
            number(budget, "/status/currentHealthy").unwrap_or(0),
            number(budget, "/status/expectedPods").unwrap_or(0),
            shown(&budget["spec"]["minAvailable"]),
            shown(&budget["spec"]["maxUnavailable"]),
        )
    });
    let pods = drain.blocked.iter().map(|pod| format!("pod {}: {}", pod.pod, pod.reason));
    let node = case.node_name();
    let mut found = case
        .find(
            FindingId::PdbBlocksDrain,
            severity,
            format!("a disruption budget blocks the drain of node {node}"),
        )
        .cause("The API server refuses to evict pods, so that their workload stays available.")
        .evidence_of(words)
        .evidence_of(pods)
        .fix(Fix::note("start more replicas on other nodes, so that the budget allows an eviction"));
    for budget in &tight {
        found = found.fix(relax(budget));
    }
    if tight.is_empty() {
        let unread: BTreeSet<_> = drain.blocked.iter().filter_map(Refusal::of).collect();
        for refusal in &unread {
            found = found.fix(refusal.relax());
        }
    }
    Some(found.fix(kill(case)))
}

/// A budget in the words of the API server: `The disruption budget web needs 2 healthy pods and has 2 currently`. It is all that
/// is known of a budget which the kubeconfig of the workload cluster does not let read.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Refusal<'a> {
    namespace: &'a str,
    name: &'a str,
    healthy: u64,
}

impl<'a> Refusal<'a> {
    fn of(blocked: &'a BlockedPod) -> Option<Self> {
        let rest = blocked.reason.strip_prefix("The disruption budget ")?;
        let (name, rest) = rest.split_once(" needs ")?;
        // It becomes part of a command.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)) {
            return None;
        }
        let healthy = rest.split_once(" and has ")?.1.split(' ').next()?.parse().ok()?;
        Some(Self { namespace: split(&blocked.pod).0, name, healthy })
    }

    /// The command that lets one more pod be away, whichever field the budget uses.
    fn relax(&self) -> Fix {
        let least = self.healthy.saturating_sub(1);
        let change = format!("{{\"spec\":{{\"maxUnavailable\":null,\"minAvailable\":{least}}}}}");
        patch_budget(self.namespace, self.name, &change)
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() {
        return "-".to_owned();
    }
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// True if a budget selects one of the blocked pods, as far as their labels are known.
fn selects_one(case: &Case<'_>, budget: &Value, blocked: &[&str]) -> bool {
    let pods = case.workload.and_then(|workload| workload.pods.get(case.node_name()));
    let Some(wanted) = budget["spec"]["selector"]["matchLabels"].as_object() else { return true };
    let Some(pods) = pods else { return true };
    pods.iter()
        .filter(|pod| namespace(pod) == namespace(budget))
        .filter(|pod| blocked.iter().any(|one| split(one) == (namespace(pod), name(pod))))
        .any(|pod| wanted.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value))
}

/// The command that lets one more pod be away. Pods that are away already count against `maxUnavailable`.
fn relax(budget: &Value) -> Fix {
    let healthy = number(budget, "/status/currentHealthy").unwrap_or(1);
    let change = if budget["spec"]["minAvailable"].is_null() {
        let expected = number(budget, "/status/expectedPods").unwrap_or(healthy);
        let away = expected.saturating_sub(healthy).max(0);
        format!("{{\"spec\":{{\"maxUnavailable\":{}}}}}", away.saturating_add(1))
    } else {
        format!("{{\"spec\":{{\"minAvailable\":{}}}}}", healthy.saturating_sub(1).max(0))
    };
    patch_budget(namespace(budget), name(budget), &change)
}

fn patch_budget(namespace: &str, name: &str, change: &str) -> Fix {
    Fix::command(format!(
        "kubectl patch {} -n {} --type=merge -p '{change}'",
        target("poddisruptionbudget", name),
        quoted(namespace)
    ))
    .in_workload_cluster(
        "allows one pod to be unavailable; the workload may have too few replicas for a while",
    )
    .risky()
}

/// Pods that are still there after their grace period.
fn stuck_pods(case: &Case<'_>, drain: &DrainStatus) -> Vec<Finding> {
    let said = drain.blocked.iter().filter(|pod| pod.reason.contains("still terminating after"));
    let mut findings = Vec::new();
    for blocked in said {
        let (space, pod) = split(&blocked.pod);
        let object = case
            .workload
            .and_then(|workload| workload.pods.get(case.node_name()))
            .and_then(|pods| pods.iter().find(|one| namespace(one) == space && name(one) == pod));
        let ended = object.and_then(|object| time(object, "/metadata/deletionTimestamp"));
        if ended.is_some_and(|ended| case.facts.since(ended) < LEEWAY) {
            continue;
        }
        let finalizers: Vec<&str> = object
            .map(|object| list(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let held = (!finalizers.is_empty()).then(|| format!("its finalizers are {}", finalizers.join(", ")));
        let title = format!("pod {} still exists after its grace period", blocked.pod);
        let found = case
            .find(FindingId::PodStuckTerminating, Severity::Error, title)
            .cause("A finalizer, a volume or a kubelet that does not respond keeps it.")
            .evidence(format!("pod {}: {}", blocked.pod, blocked.reason))
            .evidence_of(ended.map(|ended| format!("its grace period ended at {ended}")))
            .evidence_of(held)
            .fix(
                Fix::command(format!("5spot why {} -n {}", quoted(&format!("pod/{pod}")), quoted(space)))
                    .in_workload_cluster(""),
            )
            .fix(if finalizers.is_empty() { force(space, pod) } else { strip(space, pod) });
        findings.push(found);
    }
    findings
}

fn force(namespace: &str, pod: &str) -> Fix {
    let (pod, namespace) = (target("pod", pod), quoted(namespace));
    Fix::command(format!("kubectl delete {pod} -n {namespace} --grace-period=0 --force"))
        .in_workload_cluster("its process may still run, and write to its volume")
        .risky()
}

/// A forced deletion leaves a pod with finalizers where it is.
fn strip(namespace: &str, pod: &str) -> Fix {
    let (pod, namespace) = (target("pod", pod), quoted(namespace));
    Fix::command(format!(
        "kubectl patch {pod} -n {namespace} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
    ))
    .in_workload_cluster("what the owners of the finalizers would have cleaned up is left behind")
    .risky()
}

/// Pods whose grace period ends after the deadline.
fn long_grace(case: &Case<'_>, drain: &DrainStatus, window: &Window, is_overdue: bool) -> Option<Finding> {
    let said: Vec<String> = drain
        .blocked
        .iter()
        .filter(|pod| pod.reason.contains("its grace period ends at"))
        .map(|pod| format!("pod {}: {}", pod.pod, pod.reason))
        .collect();
    let pods = case.workload.and_then(|workload| workload.pods.get(case.node_name()));
    let late: Vec<String> = pods
        .into_iter()
        .flatten()
        .filter(|pod| {
            time(pod, "/metadata/deletionTimestamp")
                .is_some_and(|end| end > window.deadline && end > case.now())
        })
        .map(|pod| {
            format!(
                "pod {}/{} terminates until {} (grace period {} s), and the deadline is {}",
                namespace(pod),
                name(pod),
                text(pod, "/metadata/deletionTimestamp"),
                number(pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(0),
                window.deadline
            )
        })
        .collect();
    if said.is_empty() && late.is_empty() {
        return None;
    }
    let severity = if is_overdue { Severity::Error } else { Severity::Warning };
    let title = "the grace period of a pod ends after the drain deadline";
    Some(
        case.find(FindingId::LongGracePeriod, severity, title)
            .cause("The drain waits for the pod, and the deadline of the drain passes first.")
            .evidence_of(said)
            .evidence_of(late)
            .fix(Fix::note("wait: the drain continues after its deadline, and ends when the pod has ended"))
            .fix(
                Fix::command(case.patch(&longer_drain(case, drain, window)))
                    .because("gives the drain more time, now and in future"),
            )
            .fix(kill(case)),
    )
}

/// The end of a grace period in the words of the controller: `terminating; its grace period ends at 2026-11-16T13:00:00Z`.
fn grace_end(reason: &str) -> Option<Timestamp> {
    let (_, rest) = reason.split_once("its grace period ends at ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Time limits that are long enough for every pod that terminates, and never shorter than those of the spec.
fn longer_drain(case: &Case<'_>, drain: &DrainStatus, window: &Window) -> Value {
    let pods = case.workload.and_then(|workload| workload.pods.get(case.node_name()));
    let said = drain.blocked.iter().filter_map(|pod| grace_end(&pod.reason));
    let seen = pods.into_iter().flatten().filter_map(|pod| time(pod, "/metadata/deletionTimestamp"));
    let last = said.chain(seen).max();
    let needed = last.map_or(SignedDuration::ZERO, |end| end.duration_since(window.started));
    let needed = needed.saturating_add(LEEWAY).max(SignedDuration::from_hours(1));
    let given = case.machine.spec.as_ref().ok().map(|spec| spec.handling);
    let limit = |given: Option<SignedDuration>| minutes(given.map_or(needed, |given| given.max(needed)));
    json!({
        "gracefulShutdownTimeout": limit(given.map(|given| given.graceful_shutdown_timeout)),
        "nodeDrainTimeout": limit(given.map(|given| given.node_drain_timeout)),
    })
}

fn overdue(case: &Case<'_>, blocked: &[String]) -> Finding {
    case.find(FindingId::DrainOverdue, Severity::Error, "the drain was not finished at its deadline")
        .cause(
            "The Machine and the cordon stay, and the drain continues, because spec.drain.onTimeout is Error.",
        )
        .evidence_of(case.condition("Ready").map(|ready| ready.words()))
        .evidence_of(blocked)
        .fix(Fix::command(format!("5spot explain {} -n {}", case.machine.name(), case.machine.namespace())))
        .fix(
            Fix::command(case.patch(&json!({"drain": {"onTimeout": "Force"}})))
                .because("deletes the Machine now; the pods that are still on its node are lost")
                .risky(),
        )
}
