//! Faults of the installation and of the controller.

use super::{CONTROLLER, Case, LEASES, MACHINE, METRICS, Step, log_line};
use five_spot_diagnose::doctor::{FindingId, Severity};
use serde_json::{Value, json};

pub(super) const CRD: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledmachines.5spot.finos.org";
const MACHINES: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.x-k8s.io";

pub(super) fn all() -> Vec<Case> {
    [installation(), programs(), work(), shards()].into_iter().flatten().collect()
}

fn ready(line: &str) -> Step {
    Step::Says(format!("{CONTROLLER}:8081/proxy/ready"), vec![(503, format!("{line}\n"))])
}

/// The second scrape has other figures.
fn metrics(second: String) -> Step {
    let answers = vec![(200, METRICS.to_owned()), (200, second)];
    Step::Says(format!("{CONTROLLER}:8080/proxy/metrics"), answers)
}

fn more(line: &str) -> Step {
    metrics(format!("{METRICS}{line}\n"))
}

fn other(from: &str, to: &str) -> Step {
    metrics(METRICS.replace(from, to))
}

fn lease(name: &str, renewed: &str, instances: u32) -> Step {
    let labels = json!({"5spot.finos.org/instance-count": instances.to_string()});
    let spec = json!({
        "holderIdentity": "5spot-controller-0_1", "leaseDurationSeconds": 15,
        "renewTime": renewed, "acquireTime": "2026-11-16T10:00:00.000000Z",
    });
    Step::Create(LEASES, json!({"metadata": {"name": name, "labels": labels}, "spec": spec}))
}

/// The machine of Cluster API goes with its object.
pub(super) fn without_machine() -> [Step; 2] {
    [Step::Merge(MACHINE, json!({"metadata": {"finalizers": null}})), Step::Delete(MACHINE)]
}

pub(super) fn forget_priority(crd: &mut Value) {
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = schema["properties"]["spec"]["properties"].as_object_mut().expect("fields");
    fields.remove("priority").expect("a field");
}

fn installation() -> Vec<Case> {
    let review = json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": {"incomplete": false, "nonResourceRules": [], "resourceRules": [
            {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]},
        ]},
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews".to_owned();
    vec![
        Case::error(
            FindingId::CrdMissing,
            without_machine().into_iter().chain([Step::Delete(CRD)]).collect(),
        ),
        Case::warning(FindingId::CrdOutdated, vec![Step::Redefine(CRD, forget_priority)]),
        Case::error(
            FindingId::CapiMissing,
            without_machine().into_iter().chain([Step::Delete(MACHINES)]).collect(),
        ),
        Case::error(FindingId::RbacMissing, vec![Step::Says(reviews, vec![(201, review.to_string())])]),
        Case::error(
            FindingId::RbacMissing,
            vec![ready("not allowed to patch machines in API group \"cluster.x-k8s.io\" in all namespaces")],
        ),
        Case::error(
            FindingId::ClockSkew,
            vec![Step::Says(
                format!("{CONTROLLER}/log"),
                vec![(200, log_line("The clock is not trusted: it has jumped"))],
            )],
        ),
        Case::error(FindingId::ClockSkew, vec![lease("5spot-instance-0", "2026-11-16T12:20:00.000000Z", 1)]),
    ]
}

fn programs() -> Vec<Case> {
    let electing = Step::Merge(
        "/api/v1/namespaces/5spot-system/configmaps/5spot-controller",
        json!({"data": {"ENABLE_LEADER_ELECTION": "true"}}),
    );
    let gone = [
        Step::Merge(
            "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller",
            json!({"spec": {"replicas": 0}}),
        ),
        Step::Delete(CONTROLLER),
    ];
    vec![
        Case::error(FindingId::ControllerNotRunning, gone.into()),
        Case::error(
            FindingId::ControllerNotReady,
            vec![ready("900 of 1000 file descriptors are open: raise the limit of the container")],
        ),
        Case::error(
            FindingId::NoLeader,
            vec![electing, metrics_always("fivespot_is_leader 1", "fivespot_is_leader 0")],
        ),
    ]
}

/// Both scrapes have other figures.
fn metrics_always(from: &str, to: &str) -> Step {
    Step::Says(format!("{CONTROLLER}:8080/proxy/metrics"), vec![(200, METRICS.replace(from, to))])
}

fn work() -> Vec<Case> {
    vec![
        Case::error(FindingId::WatchStale, vec![other("machines\"} 20", "machines\"} 600")]),
        Case::warning(
            FindingId::ReconcileLoop,
            vec![other("result=\"success\"} 12", "result=\"success\"} 200")],
        ),
        Case::warning(
            FindingId::ReconcileLoop,
            vec![Step::Says(
                format!("{CONTROLLER}/log"),
                vec![(200, log_line("every reconcile leaves something to do; pausing before the next one"))],
            )],
        ),
        Case::warning(
            FindingId::ApiThrottling,
            vec![more("fivespot_api_requests_total{code=\"429\",verb=\"list\"} 3")],
        ),
        Case::error(
            FindingId::ApiUnreachable,
            vec![more("fivespot_api_requests_total{code=\"none\",verb=\"list\"} 3")],
        ),
        Case::warning(
            FindingId::MemoryGrowing,
            vec![other("process_resident_memory_bytes 40000000", "process_resident_memory_bytes 140000000")],
        ),
    ]
}

fn shards() -> Vec<Case> {
    let said = log_line("Resource not owned by this instance");
    let elsewhere = Case::new(
        FindingId::OtherShard,
        Severity::Info,
        vec![Step::Says(format!("{CONTROLLER}/log"), vec![(200, said)])],
    );
    let count = json!({"data": {"OPERATOR_INSTANCE_COUNT": "2"}});
    let by_hash = Case::new(
        FindingId::OtherShard,
        Severity::Info,
        vec![Step::Merge("/api/v1/namespaces/5spot-system/configmaps/5spot-controller", count)],
    );
    vec![
        Case { named: true, ..elsewhere },
        Case { named: true, ..by_hash },
        Case::error(
            FindingId::ShardMismatch,
            vec![
                lease("5spot-leader-instance-0", "2026-11-16T11:59:55.000000Z", 2),
                lease("5spot-leader-instance-1", "2026-11-16T11:59:55.000000Z", 3),
            ],
        ),
    ]
}
