//! The permissions of a controller that has no pods, or whose pods may not be read: its manifest shows what it needs.

use super::{CORE, Case, DoctorFixture, Step, examined, installation};
use five_spot_diagnose::doctor::{Finding, FindingId, Report, Severity};
use serde_json::{Value, json};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/5spot-system/deployments/5spot-controller";
/// The pod, whose kubelet has confirmed its end.
const ENDED: &str = "/api/v1/namespaces/5spot-system/pods/5spot-controller-0?gracePeriodSeconds=0";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

/// The rules of a controller for chosen namespaces, with these verbs for Machines.
fn review(machines: &[&str]) -> Step {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let rules = json!([
        rule("5spot.finos.org", &["*"], &["*"]),
        rule("", &["namespaces"], &["get", "watch"]),
        rule("cluster.x-k8s.io", &["clusters"], &["*"]),
        rule("cluster.x-k8s.io", &["machines"], machines),
        rule("cluster.x-k8s.io", &["machinedrainrules"], &["list"]),
        rule("events.k8s.io", &["*"], &["*"]),
        rule("coordination.k8s.io", &["*"], &["*"]),
    ]);
    let answer = json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": {"incomplete": false, "nonResourceRules": [], "resourceRules": rules},
    });
    Step::Says(REVIEWS.to_owned(), vec![(201, answer.to_string())])
}

/// The template with the flags for chosen namespaces.
fn watching(namespaces: &[&str], replicas: u32) -> Step {
    let args: Vec<String> = namespaces.iter().map(|name| format!("--watch-namespace={name}")).collect();
    let container = json!({"name": "controller", "image": "example.org/controller:1", "args": args});
    let pod = json!({"serviceAccountName": "5spot-controller", "containers": [container]});
    Step::Merge(DEPLOYMENT, json!({"spec": {"replicas": replicas, "template": {"spec": pod}}}))
}

fn scaled_to_nothing(namespaces: &[&str], machines: &[&str]) -> Vec<Step> {
    vec![watching(namespaces, 0), Step::Delete(ENDED), review(machines)]
}

fn found(report: &Report, id: FindingId) -> Option<&Finding> {
    report.findings.iter().find(|finding| finding.id == id)
}

async fn diagnosed(steps: Vec<Step>) -> Report {
    examined(Case::error(FindingId::RbacMissing, steps)).await
}

/// The roles for the whole cluster would give it more than its administrator meant.
#[tokio::test(start_paused = true)]
async fn a_stopped_controller_of_one_namespace_lacks_nothing() {
    let report = diagnosed(scaled_to_nothing(&["shop"], &["*"])).await;
    assert!(found(&report, FindingId::ControllerNotRunning).is_some(), "{report:#?}");
    assert_eq!(found(&report, FindingId::RbacMissing), None);
}

#[tokio::test(start_paused = true)]
async fn every_watched_namespace_is_reviewed() {
    let report = diagnosed(scaled_to_nothing(&["shop", "desks"], &["get", "list", "watch", "patch"])).await;
    let finding = found(&report, FindingId::RbacMissing).expect("a finding");
    assert_eq!(finding.severity, Severity::Error);
    for namespace in ["shop", "desks"] {
        let words = format!("delete machines in API group \"cluster.x-k8s.io\" in namespace {namespace}");
        assert!(finding.evidence.iter().any(|line| line.contains(&words)), "{finding:#?}");
    }
    let commands: Vec<&str> = finding.fix.iter().filter_map(|fix| fix.command.as_deref()).collect();
    assert_eq!(
        commands,
        [
            "kubectl apply -k deploy/rbac-namespaced/",
            "kubectl apply --namespace=desks -f deploy/rbac-namespaced/namespace.yaml",
            "kubectl apply --namespace=shop -f deploy/rbac-namespaced/namespace.yaml",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_manifest_shows_what_unreadable_pods_need() {
    let world = installation().await;
    for step in [watching(&["shop"], 1), review(&["*"])] {
        world.carry_out(step).await;
    }
    world.pods.forbid(&format!("{CORE}/pods"), "pods is forbidden");
    let report = world.diagnose(None, None).await.report;
    assert_eq!(found(&report, FindingId::RbacMissing), None, "{report:#?}");
}

/// An account with few rights may be that of a controller for chosen namespaces that runs outside of the cluster.
#[tokio::test(start_paused = true)]
async fn an_account_alone_is_judged_only_if_it_sees_all() {
    let lists_all = |world: &DoctorFixture| {
        let account = json!({"metadata": {"name": "5spot-controller"}});
        world.environment.api.create(&format!("{CORE}/serviceaccounts"), &account);
    };
    let none: Value = json!([]);
    let all =
        json!([{"apiGroups": ["5spot.finos.org"], "resources": ["scheduledmachines"], "verbs": ["list"]}]);
    for (rules, is_judged) in [(none, false), (all, true)] {
        let world = installation().await;
        lists_all(&world);
        let answer = json!({"metadata": {}, "status": {"incomplete": false, "resourceRules": rules}});
        let review = Step::Says(REVIEWS.to_owned(), vec![(201, answer.to_string())]);
        for step in [Step::Delete(ENDED), Step::Delete(DEPLOYMENT), review] {
            world.carry_out(step).await;
        }
        let report = world.diagnose(None, None).await.report;
        assert_eq!(found(&report, FindingId::RbacMissing).is_some(), is_judged, "{report:#?}");
    }
}
