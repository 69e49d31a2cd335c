//! The program at work: watches, loops, throttling, memory.

use super::facts::{ControllerPod, DoctorFacts};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use super::json::{list, name};
use super::logs::last_with;
use super::metrics::Scrapes;
use crate::object::ReportedObject;
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// A watch that has been silent for longer hangs: the transport ends one after three minutes, and the API server sends
/// something at least every minute.
const SILENT_WATCH_SECS: f64 = 240.0;

/// Reconciles of one object in a second that nothing explains.
const LOOP_RATE: f64 = 3.0;

/// Reconciles of one object within ten seconds of a log that nothing explains.
const LOOP_LINES: usize = 30;

/// The log line of the controller about an object that always leaves something to do.
const LOOP_MESSAGE: &str = "every reconcile leaves something to do";

/// The share of throttled requests that is no longer a single burst, and the least number of them.
const THROTTLED: (f64, f64) = (0.01, 50.0);

/// Growth of the memory that caches and their fragmentation explain.
const EXPLAINED_GROWTH: f64 = 64.0 * 1024.0 * 1024.0;

pub(super) fn judge(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    for pod in facts.pods() {
        findings.extend(unreachable(facts, pod).or_else(|| stale_watch(facts, pod)));
        findings.extend(reconcile_loop(facts, pod));
        findings.extend(throttling(facts, pod));
        findings.extend(memory(facts, pod));
    }
    if findings.is_empty() {
        findings.extend(deaf(facts));
    }
}

/// True if a line of `/ready` is about a watch: its causes have findings of their own.
pub(super) fn is_about_a_watch(line: &str) -> bool {
    line.contains("the watch of ") || line.contains("are not synced")
}

/// True if a text reports a connection that could not be made or used.
fn is_about_the_network(text: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "onnection refused",
        "error trying to connect",
        "tcp connect error",
        "no answer within",
        "timed out",
        "dns error",
        "No route to host",
        "onnection reset",
    ];
    SIGNS.iter().any(|sign| text.contains(sign))
}

fn object(facts: &DoctorFacts, pod: &ControllerPod) -> ReportedObject {
    ReportedObject::namespaced("Pod", &facts.controller.namespace, name(&pod.pod))
}

fn unreachable(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    let lines = pod.readiness.iter().filter(|ready| !ready.is_ready).flat_map(|ready| &ready.lines);
    let said: Vec<String> =
        lines.filter(|line| is_about_the_network(line)).map(|line| format!("/ready: {line}")).collect();
    let requests = "fivespot_api_requests_total";
    let counted = pod.scrapes.as_ref().filter(|scrapes| {
        let failed = scrapes.growth(requests, &[("code", "none")]);
        failed > 0.0 && scrapes.growth(requests, &[]) <= failed
    });
    if said.is_empty() && counted.is_none() {
        return None;
    }
    let counted = counted.map(|scrapes| {
        format!("{requests}{{code=\"none\"}} grew by {}", scrapes.growth(requests, &[("code", "none")]))
    });
    Some(
        Finding::new(
            FindingId::ApiUnreachable,
            Severity::Error,
            object(facts, pod),
            "the controller cannot reach the API server",
        )
        .cause(
            "Its requests get no response: because of the network, a network policy, or an API server that \
             is down.",
        )
        .evidence_of(said)
        .evidence_of(counted)
        .fix(Fix::note(
            "allow the controller's pod to connect to the API server (NetworkPolicy, firewall, DNS)",
        ))
        .fix(Fix::command(format!("kubectl get networkpolicies -n {}", facts.controller.namespace))),
    )
}

fn stale_watch(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    let silent: Vec<String> = pod
        .scrapes
        .iter()
        .flat_map(|scrapes| scrapes.second.by_label("fivespot_watch_age_seconds", "resource"))
        .filter(|(_, age)| *age > SILENT_WATCH_SECS)
        .map(|(resource, age)| format!("fivespot_watch_age_seconds{{resource=\"{resource}\"}} {age:.0}"))
        .collect();
    let lines = pod.readiness.iter().filter(|ready| !ready.is_ready).flat_map(|ready| &ready.lines);
    let said = lines
        .filter(|line| is_about_a_watch(line) && !line.contains("not allowed") && !line.contains("(403)"))
        .filter(|_| facts.cluster_api == super::facts::ClusterApi::Served && !facts_lack_definition(facts))
        .map(|line| format!("/ready: {line}"));
    let evidence: Vec<String> = silent.into_iter().chain(said).collect();
    if evidence.is_empty() {
        return None;
    }
    let refused = ["(401)", "410", "Unauthorized"].iter().find_map(|sign| last_with(&pod.log, sign));
    let title = "a watch of the controller is silent or not connected";
    Some(
        Finding::new(FindingId::WatchStale, Severity::Error, object(facts, pod), title)
            .cause("The controller does not notice changes of these objects until the watch is open again.")
            .evidence_of(evidence)
            .evidence_of(refused.map(super::logs::LogLine::words))
            .fix(Fix::note("the controller opens the watch again by itself; its log says why that fails"))
            .fix(
                Fix::command(format!(
                    "kubectl delete pod -n {} {}",
                    facts.controller.namespace,
                    name(&pod.pod)
                ))
                .because("restarts the controller; machines stay as they are"),
            ),
    )
}

fn facts_lack_definition(facts: &DoctorFacts) -> bool {
    facts.definition != super::facts::CrdState::Fits
}

/// The controller runs and seems well, and still does not act.
fn deaf(facts: &DoctorFacts) -> Option<Finding> {
    let pod = facts.pods().iter().find(|pod| pod.readiness.as_ref().is_some_and(|ready| ready.is_ready))?;
    let known = facts.known.as_ref().filter(|_| !facts.neglected.is_empty())?;
    let words =
        facts.neglected.iter().map(|object| format!("{object}: a boundary of its schedule has passed"));
    let title =
        format!("the controller has not acted on {} of {} machines", facts.neglected.len(), known.len());
    if let Some(unwatched) = unwatched(facts) {
        return Some(
            Finding::new(FindingId::WatchStale, Severity::Error, object(facts, pod), title)
                .cause(format!("The controller does not watch namespace {unwatched}: it was started with --watch-namespace."))
                .evidence_of(words)
                .evidence_of(pod.config.namespaces.iter().map(|watched| format!("--watch-namespace={watched}")))
                .fix(Fix::note(format!(
                    "start the controller with --watch-namespace={unwatched} as well, or without the flag for all namespaces"
                ))),
        );
    }
    Some(
        Finding::new(FindingId::WatchStale, Severity::Error, object(facts, pod), title)
            .cause("It is ready, and boundaries of these schedules have passed: it does not see them, or is overloaded.")
            .evidence_of(words)
            .fix(
                Fix::command(format!("kubectl delete pod -n {} {}", facts.controller.namespace, name(&pod.pod)))
                    .because("restarts the controller; machines stay as they are"),
            ),
    )
}

/// A namespace with machines on which nobody has acted, and which no instance watches.
fn unwatched(facts: &DoctorFacts) -> Option<&str> {
    let is_watched = |namespace: &str| {
        facts.pods().iter().any(|pod| {
            let watched = &pod.config.namespaces;
            watched.is_empty() || watched.iter().any(|one| one == namespace)
        })
    };
    let namespaces = facts.neglected.iter().filter_map(|object| object.split_once('/'));
    namespaces.map(|(namespace, _)| namespace).find(|namespace| !is_watched(namespace))
}

fn reconcile_loop(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    let mut evidence = Vec::new();
    if let Some(line) = last_with(&pod.log, LOOP_MESSAGE) {
        evidence.push(format!("{} ({}/{})", line.words(), line.field("namespace"), line.field("resource")));
    }
    evidence.extend(busiest(pod).map(|(object, count)| {
        format!("{object} was reconciled {count} times within ten seconds of the log")
    }));
    let objects =
        pod.scrapes.as_ref().map_or(0.0, |scrapes| scrapes.second.sum("fivespot_machines_by_phase", &[]));
    if let Some(scrapes) = &pod.scrapes {
        let rate = scrapes.rate("fivespot_reconciliations_total");
        if objects > 0.0 && rate / objects > LOOP_RATE {
            evidence.push(format!("{rate:.1} reconciles a second for {objects} machines"));
        }
    }
    if evidence.is_empty() {
        return None;
    }
    let title = "an object is reconciled again and again";
    Some(
        Finding::new(FindingId::ReconcileLoop, Severity::Warning, object(facts, pod), title)
            .cause("Something changes the object, or what belongs to it, as often as the controller corrects it.")
            .evidence_of(evidence)
            .fix(
                Fix::command("kubectl get scheduledmachines -A -w --output-watch-events")
                    .because("shows the object that keeps changing; managedFields name who writes it"),
            ),
    )
}

/// The object with most reconciles within ten seconds, if there are too many.
fn busiest(pod: &ControllerPod) -> Option<(String, usize)> {
    let newest = pod.log.iter().rev().find_map(|line| line.at)?;
    let window = SignedDuration::from_secs(10);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in pod.log.iter().filter(|line| line.message() == "Starting reconciliation") {
        if line.at.is_some_and(|at| newest.duration_since(at) <= window) {
            *counts.entry(format!("{}/{}", line.field("namespace"), line.field("resource"))).or_default() +=
                1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count >= LOOP_LINES)
}

/// Requests that were refused with 429. Evictions are refused like that by disruption budgets, and are not counted.
fn throttled(scrapes: &Scrapes) -> Option<String> {
    let name = "fivespot_api_requests_total";
    let of = |labels: &[(&str, &str)]| (scrapes.second.sum(name, labels), scrapes.growth(name, labels));
    let (all, grown) = of(&[("code", "429")]);
    let (evictions, refused) = of(&[("code", "429"), ("verb", "create")]);
    let (total, _) = of(&[]);
    let (throttled, now) = (all - evictions, grown - refused);
    let is_frequent = throttled > THROTTLED.1 && throttled > total * THROTTLED.0;
    (now > 0.0 || is_frequent)
        .then(|| format!("{throttled} of {total} requests were answered with 429, {now} of them just now"))
}

fn throttling(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    let counted = throttled(pod.scrapes.as_ref()?)?;
    let title = "the API server throttles the controller";
    Some(
        Finding::new(FindingId::ApiThrottling, Severity::Warning, object(facts, pod), title)
            .cause("The API server is overloaded, or its priority and fairness rules give the controller too little.")
            .evidence(counted)
            .evidence_of(last_with(&pod.log, "(429)").map(super::logs::LogLine::words))
            .fix(Fix::note("lower --max-concurrent-reconciles of the controller (default 16)"))
            .fix(Fix::command("kubectl get flowschemas,prioritylevelconfigurations")),
    )
}

fn memory(facts: &DoctorFacts, pod: &ControllerPod) -> Option<Finding> {
    let page = &pod.scrapes.as_ref()?.second;
    let now = page.value("process_resident_memory_bytes")?;
    let at_ready = page.value("fivespot_ready_resident_memory_bytes").filter(|bytes| *bytes > 0.0);
    let limit = list(&pod.pod, "/spec/containers")
        .first()
        .and_then(|one| bytes(one["resources"]["limits"]["memory"].as_str()?));
    let has_grown = at_ready.is_some_and(|before| now > before * 2.0 && now - before > EXPLAINED_GROWTH);
    let is_near_limit = limit.is_some_and(|limit| now > limit * 0.9);
    if !has_grown && !is_near_limit {
        return None;
    }
    let mib = |bytes: f64| format!("{:.0} MiB", bytes / 1024.0 / 1024.0);
    let severity = if is_near_limit { Severity::Error } else { Severity::Warning };
    let title = "the controller uses much more memory than when it became ready";
    Some(
        Finding::new(FindingId::MemoryGrowing, severity, object(facts, pod), title)
            .cause("The fleet has grown since then, or memory is not released.")
            .evidence(format!("process_resident_memory_bytes is {}", mib(now)))
            .evidence_of(
                at_ready.map(|before| format!("it was {} when the controller became ready", mib(before))),
            )
            .evidence_of(limit.map(|limit| format!("the limit of the container is {}", mib(limit))))
            .fix(Fix::note("raise the memory limit of the container if the fleet has grown"))
            .fix(Fix::note("otherwise take a heap profile: docs/profiling.md")),
    )
}

/// The number of bytes of a quantity such as `256Mi`.
fn bytes(quantity: &str) -> Option<f64> {
    let digits = quantity.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(digits);
    let factor = match unit {
        "" => 1.0,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}
