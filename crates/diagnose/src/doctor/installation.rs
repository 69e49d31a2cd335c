//! CRDs, permissions, Cluster API and clocks.

use super::facts::{ClusterApi, ControllerPod, CrdState, DoctorFacts, Lease};
use super::finding::{Finding, Fix, Severity};
use super::id::FindingId;
use crate::object::ReportedObject;
use crate::shell::quoted;
use jiff::SignedDuration;
use std::collections::BTreeSet;

/// The CRD of `ScheduledMachine`.
const CRD: &str = "scheduledmachines.5spot.finos.org";

/// A difference of clocks that leases and schedules do not notice.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// The most namespaces for which a command is printed.
const MAX_NAMESPACES: usize = 10;

pub(super) fn judge(facts: &DoctorFacts, findings: &mut Vec<Finding>) {
    findings.extend(definition(facts));
    findings.extend(cluster_api(facts));
    findings.extend(permissions(facts));
    findings.extend(clocks(facts));
}

fn definition(facts: &DoctorFacts) -> Option<Finding> {
    let object = || ReportedObject::cluster_scoped("CustomResourceDefinition", CRD);
    let apply = || Fix::command("kubectl apply --server-side -k deploy/crds/");
    let outdated = |severity, words: &str| {
        Finding::new(
            FindingId::CrdOutdated,
            severity,
            object(),
            "the CRD of ScheduledMachine is older than this program",
        )
        .cause("The API server drops fields that the CRD does not know.")
        .evidence(words)
        .fix(apply().because("use the files of the version of the controller"))
    };
    match &facts.definition {
        CrdState::Fits | CrdState::Unknown => None,
        CrdState::LacksFields(words) => Some(outdated(Severity::Warning, words)),
        CrdState::TooOld(words) => Some(outdated(Severity::Error, words)),
        CrdState::Absent(words) => Some(
            Finding::new(
                FindingId::CrdMissing,
                Severity::Error,
                object(),
                "the CRD of ScheduledMachine is not installed",
            )
            .cause("Without it there are no ScheduledMachines, and the controller is not ready.")
            .evidence(words)
            .fix(apply()),
        ),
    }
}

fn cluster_api(facts: &DoctorFacts) -> Option<Finding> {
    if facts.cluster_api != ClusterApi::Missing {
        return None;
    }
    let object = ReportedObject::cluster_scoped("CustomResourceDefinition", "machines.cluster.x-k8s.io");
    Some(
        Finding::new(FindingId::CapiMissing, Severity::Error, object, "Cluster API is not installed")
            .cause("5-Spot creates Machines of Cluster API, and this cluster serves none.")
            .evidence("the API group cluster.x-k8s.io has no resource machines")
            .fix(Fix::command("clusterctl init").because("with the providers that your machines need")),
    )
}

fn permissions(facts: &DoctorFacts) -> Option<Finding> {
    let by_review =
        facts.missing_permissions.iter().flatten().map(|missing| format!("not allowed to {missing}"));
    let lines = facts.pods().iter().filter_map(|pod| pod.readiness.as_ref()).flat_map(|ready| &ready.lines);
    let by_controller = lines.filter(|line| line.contains("not allowed to ")).cloned();
    let mut missing: Vec<String> = by_controller.chain(by_review).collect();
    missing.dedup();
    if missing.is_empty() {
        return None;
    }
    let object = ReportedObject::cluster_scoped("ClusterRole", "5spot-controller");
    let title = "the controller lacks a permission that every machine needs";
    let found = Finding::new(FindingId::RbacMissing, Severity::Error, object, title)
        .cause("A rule or a binding of the controller's service account is missing.")
        .evidence_of(missing);
    Some(restored_roles(facts).into_iter().fold(found, Finding::fix))
}

/// The commands that restore the roles as they are shipped. A controller for chosen namespaces gets none for the whole cluster.
fn restored_roles(facts: &DoctorFacts) -> Vec<Fix> {
    let watched: BTreeSet<&String> = facts.configurations().flat_map(|config| &config.namespaces).collect();
    if watched.is_empty() {
        let all = Fix::command("kubectl apply -k deploy/rbac/");
        return vec![all.because("restores the roles as they are shipped")];
    }
    let own = Fix::command("kubectl apply -k deploy/rbac-namespaced/").because(
        "restores the roles of the controller as they are shipped, without any for the whole cluster",
    );
    let each = watched.iter().take(MAX_NAMESPACES).map(|namespace| {
        let namespace = quoted(namespace);
        Fix::command(format!(
            "kubectl apply --namespace={namespace} -f deploy/rbac-namespaced/namespace.yaml"
        ))
    });
    std::iter::once(own).chain(each).collect()
}

/// Clocks that disagree with that of the API server.
fn clocks(facts: &DoctorFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ahead = facts.server_clock_ahead;
    if ahead.abs() > TOLERANCE {
        let word = if ahead.is_negative() { "ahead of" } else { "behind" };
        let title = "the clock of this computer differs from that of the API server";
        let object = ReportedObject::cluster_scoped("Clock", "this computer");
        findings.push(
            Finding::new(FindingId::ClockSkew, Severity::Info, object, title)
                .cause(
                    "Times are compared with the clock of the API server, so the findings are not affected.",
                )
                .evidence(format!(
                    "this computer is {} {word} the API server",
                    crate::why::duration(ahead.abs())
                ))
                .fix(Fix::note("synchronize the clock of this computer (NTP)")),
        );
    }
    let leases = facts.controller.leases.iter().flatten().filter_map(|lease| {
        let renewed = lease.renewed?;
        Some((format!("Lease {} was renewed", lease.name), renewed))
    });
    let logs = facts.pods().iter().filter_map(|pod| {
        let at = pod.log.iter().rev().find_map(|line| line.at)?;
        Some((format!("the newest line in the log of pod {} is", super::json::name(&pod.pod)), at))
    });
    let evidence: Vec<String> = leases
        .chain(logs)
        .filter(|(_, at)| at.duration_since(facts.now) > TOLERANCE)
        .map(|(what, at)| format!("{what} of {at}, and the API server's clock shows {}", facts.now))
        .collect();
    if !evidence.is_empty() {
        let object =
            ReportedObject::namespaced("Deployment", &facts.controller.namespace, "5spot-controller");
        let title = "the clock of the controller is ahead of that of the API server";
        findings.push(
            Finding::new(FindingId::ClockSkew, Severity::Error, object, title)
                .cause("Windows open and close by the clock of the controller's node.")
                .evidence_of(evidence)
                .fix(Fix::note("synchronize the clock of the node on which the controller runs (NTP)")),
        );
    }
    findings.extend(behind(facts));
    if !findings.iter().any(|finding| finding.severity == Severity::Error) {
        findings.extend(distrusted(facts));
    }
    findings
}

/// The log line of a controller whose clock differs from that of the API server by minutes, or has jumped.
const DISTRUST: &str = "The clock is not trusted";

/// The log line of its end.
const TRUST: &str = "The clock is trusted again";

/// A controller that has compared its clock with that of the API server by itself. That needs no leader election.
fn distrusted(facts: &DoctorFacts) -> Option<Finding> {
    let last = |pod: &ControllerPod| {
        let mut lines = pod.log.iter().rev();
        let line = lines.find(|line| line.text.contains(DISTRUST) || line.text.contains(TRUST))?;
        let skew =
            line.number("skew_secs").map(|skew| format!("; the difference is {skew} s")).unwrap_or_default();
        let pod = super::json::name(&pod.pod);
        line.text.contains(DISTRUST).then(|| format!("{} (pod {pod}{skew})", line.words()))
    };
    let evidence: Vec<String> = facts.pods().iter().filter_map(last).collect();
    if evidence.is_empty() {
        return None;
    }
    let object = ReportedObject::namespaced("Deployment", &facts.controller.namespace, "5spot-controller");
    Some(
        Finding::new(FindingId::ClockSkew, Severity::Error, object, "the clock of the controller is wrong")
            .cause(
                "Windows open and close by the clock of the controller's node. It has jumped, or differs from that \
                 of the API server by more than five minutes.",
            )
            .evidence_of(evidence)
            .fix(Fix::note(
                "synchronize the clock of the node on which the controller runs (NTP); after a jump it is not \
                 trusted for an hour",
            )),
    )
}

/// A leader that renews its Lease, and writes times into it that are long past.
fn behind(facts: &DoctorFacts) -> Option<Finding> {
    let (lease, renewed) = facts.controller.leases.iter().flatten().find_map(|lease| {
        let renewed = lease.renewed?;
        let is_late = facts.now.duration_since(renewed) > TOLERANCE + lease.duration;
        (is_late && facts.pods().iter().any(|pod| leads_by(pod, lease))).then_some((lease, renewed))
    })?;
    let object = ReportedObject::namespaced("Deployment", &facts.controller.namespace, "5spot-controller");
    let title = "the clock of the controller is behind that of the API server";
    Some(
        Finding::new(FindingId::ClockSkew, Severity::Error, object, title)
            .cause("Windows open and close by the clock of the controller's node.")
            .evidence(format!(
                "{} is the leader and renewed Lease {} at {renewed} by its own clock; that of the API server \
                 shows {}",
                lease.holder, lease.name, facts.now
            ))
            .fix(Fix::note("synchronize the clock of the node on which the controller runs (NTP)")),
    )
}

/// True if a pod says that it leads, and a Lease names it as its holder.
fn leads_by(pod: &ControllerPod, lease: &Lease) -> bool {
    let leads = pod.scrapes.as_ref().and_then(|scrapes| scrapes.second.value("fivespot_is_leader"));
    let shard = lease.name.strip_prefix(pod.config.lease_name.as_str());
    let is_of_leader = shard.is_some_and(|shard| !shard.starts_with("-instance-"));
    let holder = lease.holder.split('_').next().unwrap_or_default();
    pod.config.leader_election
        && is_of_leader
        && leads.is_some_and(|leads| leads > 0.5)
        && holder == super::json::name(&pod.pod)
}
