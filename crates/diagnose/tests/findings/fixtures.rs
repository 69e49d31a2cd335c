//! A healthy installation with one machine that is lent, and the ways to break it.

use five_spot_diagnose::controller_config::ControllerConfig;
use five_spot_diagnose::doctor::{
    AgentPod, ControllerFacts, ControllerPod, DoctorFacts, Lease, LogLine, MachineFacts, Page, PodReadiness,
    Scrapes, WorkloadFacts, WorkloadKey,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Monday noon: the window is open since nine.
pub const NOW: &str = "2026-11-16T12:00:00Z";

pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Everything is well.
pub fn healthy() -> DoctorFacts {
    let mut facts = DoctorFacts::new(time(NOW));
    facts.controller = ControllerFacts {
        namespace: "5spot-system".to_owned(),
        pods: Some(vec![controller_pod()]),
        leases: Some(Vec::new()),
        owners: Some(vec![
            json!({"kind": "Deployment", "metadata": {"name": "5spot-controller"}, "spec": {"replicas": 1}}),
        ]),
        template: None,
    };
    facts.machines = vec![MachineFacts::new(lent())];
    facts.known = Some(vec!["shop/desk".to_owned()]);
    facts.capi_machines = vec![capi_machine()];
    facts
}

/// The same with another object.
pub fn with_object(object: Value) -> DoctorFacts {
    let mut facts = healthy();
    facts.machines = vec![MachineFacts::new(object)];
    facts
}

pub fn controller_pod() -> ControllerPod {
    ControllerPod {
        pod: json!({
            "metadata": {"name": "5spot-controller-0", "namespace": "5spot-system"},
            "spec": {"containers": [{"name": "controller", "resources": {"limits": {"memory": "256Mi"}}}]},
            "status": {
                "phase": "Running", "startTime": "2026-11-16T06:00:00Z",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }),
        config: ControllerConfig::default(),
        readiness: Some(PodReadiness { is_ready: true, lines: Vec::new() }),
        scrapes: Some(scrapes(HEALTHY_METRICS, HEALTHY_METRICS)),
        log: Vec::new(),
    }
}

pub const HEALTHY_METRICS: &str = "fivespot_is_leader 1\nfivespot_machines_by_phase{phase=\"Active\"} 1\n\
    fivespot_reconciliations_total{phase=\"Active\",result=\"success\"} 12\n\
    fivespot_api_requests_total{code=\"200\",verb=\"get\"} 100\nfivespot_watch_age_seconds{resource=\"machines\"} 20\n\
    process_resident_memory_bytes 40000000\nfivespot_ready_resident_memory_bytes 30000000\n";

pub fn scrapes(first: &str, second: &str) -> Scrapes {
    Scrapes { first: Page::parse(first), second: Page::parse(second), apart: SignedDuration::from_secs(2) }
}

/// Changes the controller's pod.
pub fn with_pod(change: impl FnOnce(&mut ControllerPod)) -> DoctorFacts {
    let mut facts = healthy();
    let mut pod = controller_pod();
    change(&mut pod);
    facts.controller.pods = Some(vec![pod]);
    facts
}

/// A log of one line.
pub fn log(message: &str, fields: &Value) -> Vec<LogLine> {
    let mut all = json!({"message": message, "namespace": "shop", "resource": "desk"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let line = json!({"timestamp": "2026-11-16T11:59:30Z", "level": "INFO", "fields": all});
    LogLine::parse(&line.to_string())
}

pub fn condition(kind: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
        "observedGeneration": 1})
}

/// A machine that is lent, with a Ready node.
pub fn lent() -> Value {
    let since = "2026-11-16T09:01:00Z";
    json!({
        "metadata": {
            "name": "desk", "namespace": "shop", "generation": 1, "creationTimestamp": "2026-11-16T06:00:00Z",
            "finalizers": ["5spot.finos.org/scheduledmachine"],
        },
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC", "enabled": true},
            "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine", "spec": {},
            },
        },
        "status": {
            "phase": "Active", "message": "lent", "observedGeneration": 1, "inSchedule": true,
            "nextCleanup": "2026-11-16T18:00:00Z", "nextActivation": "2026-11-17T09:00:00Z",
            "nextChange": "2026-11-16T18:00:00Z",
            "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "desk-1", "uid": "node"},
            "machineRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "desk-machine"},
            "workloadCluster": {"secretName": "prod-kubeconfig", "secretKey": "value"},
            "conditions": [
                condition("Ready", "True", "NodeReady", "lent", since),
                condition("MachineReady", "True", "NodeReady", "node desk-1 is Ready", since),
                condition("Scheduled", "True", "InWindow", "the schedule is open", since),
                condition("ReferencesValid", "True", "Resolved", "all objects exist", since),
                condition("Paused", "False", "NotPaused", "not paused", since),
            ],
        },
    })
}

/// The same with other conditions.
pub fn lent_with(conditions: &[Value]) -> Value {
    let mut object = lent();
    for new in conditions {
        let all = object["status"]["conditions"].as_array_mut().expect("conditions");
        all.retain(|old| old["type"] != new["type"]);
        all.push(new.clone());
    }
    object
}

/// The same in phase `Error`, with the reason of the condition `Ready`.
pub fn failing(reason: &str, message: &str) -> Value {
    let mut object = lent_with(&[condition("Ready", "False", reason, message, "2026-11-16T11:00:00Z")]);
    object["status"]["phase"] = json!("Error");
    object
}

/// The window has closed early, and no machine is wanted.
pub fn idle(reason: &str) -> Value {
    let mut object = lent_with(&[
        condition("Ready", "True", "Inactive", "no machine is lent", "2026-11-16T10:00:00Z"),
        condition(
            "MachineReady",
            "False",
            "NoMachine",
            "Machine desk-machine does not exist",
            "2026-11-16T10:00:00Z",
        ),
        condition("Scheduled", "False", reason, "not wanted", "2026-11-16T10:00:00Z"),
    ]);
    object["status"]["phase"] = json!("Inactive");
    for field in ["nodeRef", "machineRef", "workloadCluster"] {
        object["status"].as_object_mut().expect("a status").remove(field);
    }
    object
}

/// Facts about a machine that is not lent.
pub fn idle_facts(object: Value) -> DoctorFacts {
    let mut facts = with_object(object);
    facts.capi_machines = Vec::new();
    facts
}

pub fn capi_machine() -> Value {
    json!({
        "metadata": {
            "name": "desk-machine", "namespace": "shop", "creationTimestamp": "2026-11-16T09:00:00Z",
            "labels": {"5spot.finos.org/scheduled-machine": "desk"},
            "finalizers": ["machine.cluster.x-k8s.io"],
        },
        "status": {"nodeRef": {"name": "desk-1"}},
    })
}

pub fn node() -> Value {
    json!({
        "metadata": {"name": "desk-1", "labels": {"5spot.finos.org/reclaim-agent": "enabled"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-16T09:01:00Z"}]},
    })
}

pub fn agent_pod() -> Value {
    json!({
        "metadata": {"name": "5spot-reclaim-agent-x", "namespace": "5spot-system"},
        "spec": {"nodeName": "desk-1", "hostPID": true, "hostNetwork": true},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub fn key() -> WorkloadKey {
    WorkloadKey { namespace: "shop".to_owned(), secret: Some("prod-kubeconfig".to_owned()) }
}

/// A machine with a reclaim agent that works.
pub fn with_agent(change: impl FnOnce(&mut WorkloadFacts)) -> DoctorFacts {
    let mut object = lent();
    object["spec"]["killIfCommands"] = json!(["java"]);
    with_agent_of(object, change)
}

/// The same for another object.
pub fn with_agent_of(object: Value, change: impl FnOnce(&mut WorkloadFacts)) -> DoctorFacts {
    let toml = "match_commands = [\"java\"]\nmatch_argv_substrings = []\npoll_interval_ms = 250\n";
    let config = json!({"metadata": {"name": "reclaim-agent-desk-1"}, "data": {"reclaim.toml": toml}});
    let mut workload = WorkloadFacts {
        nodes: Some(BTreeMap::from([("desk-1".to_owned(), node())])),
        agents: Some(vec![AgentPod { pod: agent_pod(), log: Vec::new() }]),
        agent_configs: Some(BTreeMap::from([("reclaim-agent-desk-1".to_owned(), config)])),
        daemon_sets: Some(vec![json!({"metadata": {"name": "5spot-reclaim-agent"}})]),
        agent_namespace: Some(json!({"metadata": {"name": "5spot-system"}})),
        ..WorkloadFacts::default()
    };
    change(&mut workload);
    let mut facts = with_object(object);
    facts.workloads = BTreeMap::from([(key(), workload)]);
    facts
}

pub fn lease(name: &str, holder: &str, renewed: &str) -> Lease {
    Lease {
        name: name.to_owned(),
        holder: holder.to_owned(),
        renewed: Some(time(renewed)),
        duration: SignedDuration::from_secs(15),
        instances: None,
        acquired: Some(time("2026-11-16T08:00:00Z")),
    }
}
