//! One world for each finding: an installation in an in-memory API server, with one fault. The doctor collects its facts from
//! there, so that each judgement is known to get what it needs from real requests. The words in statuses are those of the
//! controller; where the controller itself can be brought to write them, `faults` and `fixes` do that as well.

mod controllers;
mod machines;
mod permissions;
mod repairs;
mod workloads;

use super::fixture::{DoctorFixture, fleet, grave, machine};
use super::kubectl;
use super::manners::PLAIN;
use crate::doctor::text;
use controllers::{CRD, forget_priority, without_machine};
use five_spot_api::names;
use five_spot_diagnose::doctor::{FindingId, Report, Severity};
use http::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const CORE: &str = "/api/v1/namespaces/5spot-system";
const DESK: &str = "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/desk";
const MACHINE: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machines/desk-machine";
const NODE: &str = "/api/v1/nodes/desk-1";
const AGENT: &str = "/api/v1/namespaces/5spot-system/pods/agent-1";
const CONTROLLER: &str = "/api/v1/namespaces/5spot-system/pods/5spot-controller-0";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";

/// The time of the installation; the doctor comes three hours later, at noon.
const INSTALLED: &str = "2026-11-16T09:00:00Z";

/// An hour before the doctor comes.
const AN_HOUR_AGO: &str = "2026-11-16T11:00:00Z";

const METRICS: &str = "fivespot_is_leader 1\nfivespot_machines_by_phase{phase=\"Active\"} 1\n\
    fivespot_reconciliations_total{phase=\"Active\",result=\"success\"} 12\n\
    fivespot_api_requests_total{code=\"200\",verb=\"get\"} 100\nfivespot_watch_age_seconds{resource=\"machines\"} 20\n\
    process_resident_memory_bytes 40000000\nfivespot_ready_resident_memory_bytes 30000000\n";

/// A step that brings a fault about.
pub enum Step {
    /// Merges into an object.
    Merge(&'static str, Value),
    /// Merges into the status of an object.
    Status(&'static str, Value),
    /// Replaces conditions of an object.
    Conditions(&'static str, Vec<Value>),
    /// Replaces a CRD by a changed one.
    Redefine(&'static str, fn(&mut Value)),
    Create(&'static str, Value),
    Delete(&'static str),
    /// The answers of a pod, one after the other.
    Says(String, Vec<(u16, String)>),
    Pass(Duration),
}

/// A world with one fault.
pub struct Case {
    id: FindingId,
    severity: Severity,
    steps: Vec<Step>,
    /// True if the machine is asked about by name.
    named: bool,
}

impl Case {
    fn new(id: FindingId, severity: Severity, steps: Vec<Step>) -> Self {
        Self { id, severity, steps, named: false }
    }

    fn error(id: FindingId, steps: Vec<Step>) -> Self {
        Self::new(id, Severity::Error, steps)
    }

    fn warning(id: FindingId, steps: Vec<Step>) -> Self {
        Self::new(id, Severity::Warning, steps)
    }
}

fn all() -> Vec<Case> {
    [controllers::all(), machines::all(), workloads::all()].into_iter().flatten().collect()
}

/// The findings for which a world is here.
pub fn covered() -> BTreeSet<FindingId> {
    all().iter().map(|case| case.id).collect()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": AN_HOUR_AGO,
        "observedGeneration": 1})
}

/// The text of a log line of the controller about the machine.
fn log_line(message: &str) -> String {
    let fields = json!({"message": message, "namespace": "shop", "resource": "desk"});
    json!({"timestamp": "2026-11-16T11:59:30Z", "level": "INFO", "fields": fields}).to_string()
}

fn lent_status() -> Value {
    json!({
        "phase": "Active", "message": "lent", "observedGeneration": 1, "inSchedule": true, "workloadCluster": {},
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "desk-1", "uid": "node"},
        "machineRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "desk-machine", "namespace": "shop"},
        "conditions": [
            condition("Ready", "True", "NodeReady", "lent"),
            condition("MachineReady", "True", "NodeReady", "node desk-1 is Ready"),
            condition("Scheduled", "True", "InWindow", "the schedule is open"),
            condition("ReferencesValid", "True", "Resolved", "all objects exist"),
            condition("Paused", "False", "NotPaused", "not paused"),
        ],
    })
}

/// A healthy installation with one machine that is lent, and an agent on its node.
async fn installation() -> DoctorFixture {
    let desk = machine("desk", &json!({"killIfCommands": ["java"]}));
    let world = DoctorFixture::without_controller(INSTALLED, &fleet(vec![desk])).await;
    let api = &world.environment.api;
    let labels = json!({"app": "5spot-controller"});
    let container = json!({
        "name": "controller", "image": "example.org/controller:1", "resources": {"limits": {"memory": "256Mi"}},
        "envFrom": [{"configMapRef": {"name": "5spot-controller"}}],
    });
    let config = json!({"metadata": {"name": "5spot-controller"}, "data": {"RUST_LOG": "info"}});
    api.create(&format!("{CORE}/configmaps"), &config);
    let pod = json!({
        "metadata": {"name": "5spot-controller-0", "labels": labels},
        "spec": {"nodeName": "control-plane", "containers": [container]},
    });
    api.create(&format!("{CORE}/pods"), &pod);
    let deployment = json!({
        "metadata": {"name": "5spot-controller", "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    api.create("/apis/apps/v1/namespaces/5spot-system/deployments", &deployment);
    let capi_machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": "desk-machine", "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {(names::label::SCHEDULED_MACHINE): "desk", "cluster.x-k8s.io/cluster-name": "shop"},
        },
        "spec": {
            "clusterName": "shop", "bootstrap": {"dataSecretName": "desk-bootstrap"},
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "desk-infra",
            },
        },
    });
    api.create("/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/machines", &capi_machine);
    let enabled = json!({(names::label::RECLAIM_AGENT): names::label::RECLAIM_AGENT_ENABLED});
    api.create("/api/v1/nodes", &json!({"metadata": {"name": "desk-1", "labels": enabled}}));
    let agent = json!({
        "metadata": {"name": "agent-1", "labels": {"app": "5spot-reclaim-agent"}},
        "spec": {
            "nodeName": "desk-1", "hostPID": true, "hostNetwork": true,
            "containers": [{"name": "agent", "image": "example.org/agent:1"}],
        },
    });
    api.create(&format!("{CORE}/pods"), &agent);
    let toml = "match_commands = [\"java\"]\nmatch_argv_substrings = []\npoll_interval_ms = 250\n";
    let config = json!({"metadata": {"name": "reclaim-agent-desk-1"}, "data": {"reclaim.toml": toml}});
    api.create(&format!("{CORE}/configmaps"), &config);
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": INSTALLED}]);
    let running = json!({"phase": "Running", "startTime": INSTALLED, "conditions": ready});
    for (path, status) in [
        (CONTROLLER, running.clone()),
        (AGENT, running),
        (NODE, json!({"conditions": ready})),
        (MACHINE, json!({"nodeRef": {"name": "desk-1"}})),
        (DESK, lent_status()),
    ] {
        world.carry_out(Step::Status(path, status)).await;
    }
    world.pods.set(&format!("{CONTROLLER}:8080/proxy/metrics"), &[(200, METRICS)]);
    world.pods.set(&format!("{CONTROLLER}:8081/proxy/ready"), &[(200, "ok\n")]);
    world.pods.set(&format!("{CONTROLLER}/log"), &[(200, "")]);
    world.pods.set(&format!("{AGENT}/log"), &[(200, "")]);
    world.pass(Duration::from_hours(3)).await;
    world
}

impl DoctorFixture {
    async fn carry_out(&self, step: Step) {
        let merge = async |path: String, change: Value| {
            let request = Request::patch(path).header("content-type", "application/merge-patch+json");
            self.send(request.body(change.to_string().into_bytes())).await;
        };
        match step {
            Step::Merge(path, change) => merge(path.to_owned(), change).await,
            Step::Status(path, status) => merge(format!("{path}/status"), json!({"status": status})).await,
            Step::Conditions(path, changed) => {
                let object = kubectl::get(&self.client, path).await;
                let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                all.retain(|old| changed.iter().all(|new| new["type"] != old["type"]));
                all.extend(changed);
                merge(format!("{path}/status"), json!({"status": {"conditions": all}})).await;
            }
            Step::Redefine(path, change) => {
                let mut crd = kubectl::get(&self.client, path).await;
                change(&mut crd);
                let request = Request::put(path).header("content-type", "application/json");
                self.send(request.body(crd.to_string().into_bytes())).await;
            }
            Step::Create(path, object) => drop(self.environment.api.create(path, &object)),
            Step::Delete(path) => self.send(Request::delete(path).body(Vec::new())).await,
            Step::Says(path, answers) => {
                let answers: Vec<(u16, &str)> =
                    answers.iter().map(|(code, text)| (*code, text.as_str())).collect();
                self.pods.set(&path, &answers);
            }
            Step::Pass(time) => self.pass(time).await,
        }
    }

    async fn send(&self, request: http::Result<Request<Vec<u8>>>) {
        let request = request.expect("a request");
        let what = format!("{} {}", request.method(), request.uri());
        self.client.request::<Value>(request).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

async fn examined(case: Case) -> Report {
    let world = installation().await;
    for step in case.steps {
        world.carry_out(step).await;
    }
    let name = case.named.then_some("desk");
    world.diagnose(name.map(|_| "shop"), name).await.report
}

#[tokio::test(start_paused = true)]
async fn a_healthy_installation_has_no_findings() {
    let world = installation().await;
    let diagnosis = world.diagnose(None, None).await;
    assert_eq!(diagnosis.report.findings, []);
    assert_eq!(diagnosis.report.checked, 1);
    assert_eq!(diagnosis.not_read, [""; 0]);
}

/// The findings that people meet most often, as they see them.
#[tokio::test(start_paused = true)]
async fn the_text_of_common_findings_is_clear() {
    let mut text = String::new();
    for id in COMMON {
        let case = all().into_iter().find(|case| case.id == id).unwrap_or_else(|| panic!("{id}"));
        let is_named = case.named;
        let page = text::render(&examined(case).await, &[], is_named, PLAIN);
        // The groups in which all is well say the same everywhere.
        let lines = page.lines().filter(|line| !line.starts_with('√') && !line.is_empty());
        text.extend(lines.flat_map(|line| [line, "\n"]));
        text.push('\n');
    }
    insta::assert_snapshot!("common_findings", text);
}

const COMMON: [FindingId; 10] = [
    FindingId::ControllerNotRunning,
    FindingId::RbacMissing,
    FindingId::NoLeader,
    FindingId::PdbBlocksDrain,
    FindingId::KubeconfigUnusable,
    FindingId::ProviderNotReady,
    FindingId::JoinFailed,
    FindingId::MachineStuckDeleting,
    FindingId::EmergencyStuck,
    FindingId::AgentPodMissing,
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_found_from_collected_facts() {
    let mut wrong = Vec::new();
    for case in all() {
        let expected = [(case.id, case.severity)];
        let report = examined(case).await;
        let found: Vec<(FindingId, Severity)> =
            report.findings.iter().map(|finding| (finding.id, finding.severity)).collect();
        if found != expected {
            wrong.push(format!("expected {expected:?}, found {:#?}", report.findings));
        }
        if let Some(bare) = report.findings.iter().find(|one| one.evidence.is_empty() || one.fix.is_empty()) {
            wrong.push(format!("no evidence or no fix: {bare:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A proxy that does not answer costs less than the five seconds that the doctor may take.
#[tokio::test(start_paused = true)]
async fn pods_that_do_not_answer_cost_less_than_five_seconds() {
    let endpoints =
        [":8080/proxy/metrics", ":8081/proxy/ready", "/log"].map(|end| format!("{CONTROLLER}{end}"));
    let agent = format!("{AGENT}/log");
    for paths in [vec![agent.clone()], endpoints.to_vec(), [endpoints.as_slice(), &[agent]].concat()] {
        let world = installation().await;
        for path in &paths {
            world.pods.hang(path);
        }
        let began = tokio::time::Instant::now();
        let diagnosis = world.diagnose(None, None).await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}: {paths:?}");
        assert_eq!(diagnosis.not_read.len(), paths.len(), "{:#?}", diagnosis.not_read);
        assert!(grave(&diagnosis.report).is_empty(), "{:#?}", diagnosis.report);
    }
}

/// Objects that the reader may not read hide findings, and cause none.
#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_named_once() {
    let world = installation().await;
    let paths = [
        format!("{CORE}/pods"),
        LEASES.to_owned(),
        "/apis/cluster.x-k8s.io/v1beta2/machines".to_owned(),
        NODE.to_owned(),
        format!("{CORE}/configmaps"),
    ];
    for path in &paths {
        world.pods.forbid(path, "it is forbidden to you");
    }
    let diagnosis = world.diagnose(None, None).await;
    assert!(grave(&diagnosis.report).is_empty(), "{:#?}", diagnosis.report);
    let unique: BTreeSet<&String> = diagnosis.not_read.iter().collect();
    assert_eq!(unique.len(), diagnosis.not_read.len(), "{:#?}", diagnosis.not_read);
    for what in ["Pods in namespace 5spot-system", "Leases", "Machines", "Nodes", "ConfigMaps"] {
        let named = diagnosis.not_read.iter().filter(|note| note.starts_with(what)).count();
        assert_eq!(named, 1, "{what}: {:#?}", diagnosis.not_read);
    }
}
