//! A fault, the finding, its printed fix applied literally, and the finding is gone.

use super::fixture::{DoctorFixture, START, fleet, grave, machine};
use super::kubectl::get;
use five_spot_diagnose::doctor::{Finding, FindingId, Severity};
use five_spot_standins::node_name;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn node() -> String {
    node_name("shop", &five_spot_api::names::infrastructure("desk"))
}

/// The command of a fix that begins like this.
pub(super) fn command<'a>(finding: &'a Finding, begins: &str) -> &'a str {
    let commands = finding.fix.iter().filter_map(|fix| fix.command.as_deref());
    commands
        .into_iter()
        .find(|command| command.starts_with(begins))
        .unwrap_or_else(|| panic!("{begins}: {finding:#?}"))
}

/// A world with one machine that is lent.
pub(super) async fn lent(further: &Value, others: Vec<Value>) -> DoctorFixture {
    let mut objects = vec![machine("desk", further)];
    objects.extend(others);
    let world = DoctorFixture::new(START, fleet(objects)).await;
    world.phase("desk", "Active").await;
    // The node joins, and everything settles.
    world.pass(Duration::from_mins(5)).await;
    world
}

/// Notes of severity `info` are looked for by their id.
async fn note(world: &DoctorFixture, id: FindingId) -> Finding {
    let report = world.report().await;
    let found = report.findings.iter().find(|finding| finding.id == id);
    let found = found.unwrap_or_else(|| panic!("not found: {id}; instead {report:#?}")).clone();
    assert_eq!(found.severity, Severity::Info);
    assert!(grave(&report).is_empty(), "{report:#?}");
    found
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_disabled_is_enabled_again() {
    let world = lent(&json!({}), Vec::new()).await;
    world.is_well().await;
    let object = "scheduledmachine desk -n shop";
    for (spec, phase) in
        [("{\"schedule\":{\"enabled\":false}}", "Disabled"), ("{\"killSwitch\":true}", "Terminated")]
    {
        world.run(&format!("kubectl patch {object} --type=merge -p '{{\"spec\":{spec}}}'")).await;
        world.phase("desk", phase).await;
        let found = note(&world, FindingId::ScheduleDisabled).await;
        world.run(command(&found, "kubectl patch")).await;
        world.phase("desk", "Active").await;
        world.is_well().await;
        assert!(world.report().await.findings.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_lends_a_machine_outside_of_its_window() {
    let world = DoctorFixture::new(
        START,
        fleet(vec![machine("desk", &json!({"schedule": {"daysOfWeek": ["sun"]}}))]),
    )
    .await;
    world.phase("desk", "Inactive").await;
    let found = note(&world, FindingId::ScheduleNotNow).await;
    assert!(found.evidence.iter().any(|words| words.contains("2026-11-22T00:00:00Z")), "{found:?}");
    world.run(command(&found, "kubectl patch scheduledmachine")).await;
    world.phase("desk", "Active").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn each_pause_is_ended_by_its_own_command() {
    let world = lent(&json!({}), Vec::new()).await;
    let pauses = [
        "kubectl annotate scheduledmachine desk -n shop 5spot.finos.org/paused=true",
        "kubectl annotate namespace shop 5spot.finos.org/paused=true",
        "kubectl annotate scheduledmachine desk -n shop cluster.x-k8s.io/paused=true",
        "kubectl annotate machines.cluster.x-k8s.io desk-machine -n shop cluster.x-k8s.io/paused=true",
        "kubectl patch clusters.cluster.x-k8s.io shop -n shop --type=merge -p '{\"spec\":{\"paused\":true}}'",
    ];
    for pause in pauses {
        world.run(pause).await;
        world.pass(Duration::from_secs(30)).await;
        // Nothing is held back as long as nothing is to be done.
        note(&world, FindingId::Paused).await;
        world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":false}}}'").await;
        let found = world.finds(FindingId::Paused).await;
        assert_eq!(found.severity, Severity::Warning, "{pause}");
        world.run(command(&found, "kubectl")).await;
        world.phase("desk", "Disabled").await;
        world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":true}}}'").await;
        world.phase("desk", "Active").await;
        world.pass(Duration::from_mins(5)).await;
        world.is_well().await;
    }
}

fn deployment() -> Vec<Value> {
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": node()},
                    "containers": [{"name": "main", "image": "example.org/app:1"}],
                },
            },
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": labels}},
    });
    vec![deployment, budget]
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_blocks_a_drain_is_named_and_relaxed() {
    let world = lent(&json!({}), deployment()).await;
    world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":false}}}'").await;
    let found = world.finds(FindingId::PdbBlocksDrain).await;
    assert_eq!(found.severity, Severity::Warning, "half of the time is over");
    assert!(
        found.evidence.iter().any(|words| words.contains("PodDisruptionBudget shop/web: 0 disruptions")),
        "{found:#?}"
    );
    world.pass(Duration::from_mins(4)).await;
    let found = world.finds(FindingId::PdbBlocksDrain).await;
    assert_eq!(found.severity, Severity::Error, "the deadline has passed");
    // Each application lets one more pod be away.
    world.run(command(&found, "kubectl patch poddisruptionbudget")).await;
    world.pass(Duration::from_mins(6)).await;
    if let [found] = grave(&world.report().await).as_slice() {
        world.run(command(found, "kubectl patch poddisruptionbudget")).await;
    }
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

/// A pod that has to complete, and does not.
#[tokio::test(start_paused = true)]
async fn an_overdue_drain_is_ended_by_force() {
    let job = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "job", "namespace": "shop", "labels": {"cluster.x-k8s.io/drain": "wait-completed"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node()},
            "containers": [{"name": "main", "image": "example.org/app:1"}],
        },
    });
    let world = lent(&json!({}), vec![job]).await;
    world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"schedule\":{\"enabled\":false}}}'").await;
    let found = world.finds(FindingId::DrainOverdue).await;
    world.run(command(&found, "kubectl patch scheduledmachine")).await;
    world.phase("desk", "Disabled").await;
    world.is_well().await;
}

/// The provider's CRD refuses the object; once the spec is corrected, nobody has to wait for the back-off.
#[tokio::test(start_paused = true)]
async fn a_refused_creation_is_retried_at_once() {
    let version = |version: Value| {
        let patch = json!({"spec": {"bootstrapSpec": {"spec": {"version": version}}}});
        format!("kubectl patch scheduledmachine desk -n shop --type=merge -p '{patch}'")
    };
    let refused = json!({"bootstrapSpec": {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {"version": 7},
    }});
    let world = DoctorFixture::new(START, fleet(vec![machine("desk", &refused)])).await;
    let found = world.finds(FindingId::MachineCreationFailed).await;
    world.run(&version(json!("v1.36.4+k0s.0"))).await;
    world.run(command(&found, "kubectl annotate scheduledmachine")).await;
    world.phase("desk", "Active").await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_taint_of_another_client_is_named_and_removed() {
    let world = lent(&json!({}), Vec::new()).await;
    let taint = json!([{"key": "example.org/lent", "effect": "NoSchedule"}]);
    world
        .run(&format!("kubectl patch node {} --type=merge -p '{{\"spec\":{{\"taints\":{taint}}}}}'", node()))
        .await;
    world.run(&format!("kubectl patch scheduledmachine desk -n shop --type=merge -p '{{\"spec\":{{\"nodeTaints\":{taint}}}}}'")).await;
    let found = world.finds(FindingId::TaintConflict).await;
    world.run(command(&found, "kubectl taint")).await;
    world.is_well().await;
    let node = get(&world.client, &format!("/api/v1/nodes/{}", node())).await;
    assert_eq!(node["spec"]["taints"][0]["key"], "example.org/lent", "ours now");
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_its_object_is_found_and_deleted() {
    let world = lent(&json!({}), Vec::new()).await;
    let path =
        "/apis/5spot.finos.org/v1alpha1/namespaces/shop/scheduledmachines/desk?propagationPolicy=Orphan";
    let request = http::Request::delete(path).body(Vec::new()).expect("a request");
    world.client.request::<Value>(request).await.expect("it is deleted");
    world.pass(Duration::from_mins(1)).await;
    let report = world.report().await;
    let found = report.findings.iter().find(|finding| finding.id == FindingId::OrphanedMachine);
    let found = found.unwrap_or_else(|| panic!("{report:#?}"));
    assert_eq!((found.object.kind.as_str(), found.object.name.as_str()), ("Machine", "desk-machine"));
    world.run(command(found, "kubectl delete")).await;
    world.pass(Duration::from_mins(5)).await;
    // Nothing shows whether a controller runs elsewhere when there are no objects.
    let report = world.report().await;
    assert!(report.findings.iter().all(|finding| finding.id != FindingId::OrphanedMachine), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_configuration_of_an_agent_is_repaired() {
    let world = lent(&json!({"killIfCommands": ["java"]}), Vec::new()).await;
    world.is_well().await;
    world.run("kubectl delete daemonset 5spot-reclaim-agent -n 5spot-system").await;
    let found = world.finds(FindingId::AgentPodMissing).await;
    assert!(found.evidence.iter().any(|words| words.contains("no DaemonSet")), "{found:#?}");
    world.run(command(&found, "kubectl apply -k")).await;
    world.is_well().await;
    let map = format!("kubectl patch configmap reclaim-agent-{} -n 5spot-system --type=merge -p", node());
    for (toml, id) in [
        ("match_commands = []", FindingId::AgentConfigEmpty),
        ("match_commands = [", FindingId::AgentConfigInvalid),
    ] {
        world.run(&format!("{map} '{}'", json!({"data": {"reclaim.toml": toml}}))).await;
        let found = world.finds(id).await;
        world.run(command(&found, "kubectl delete configmap")).await;
        world.is_well().await;
    }
    world.run("kubectl patch scheduledmachine desk -n shop --type=merge -p '{\"spec\":{\"killIfCommands\":[\"Java\",\"Xorg\"]}}'").await;
    let found = world.finds(FindingId::AgentCaseMismatch).await;
    world.run(command(&found, "kubectl patch")).await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_found_until_it_is_free() {
    let mut foreign = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "taken-machine", "namespace": "shop"},
        "spec": {"clusterName": "shop", "bootstrap": {"dataSecretName": "x"},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "y"}},
    });
    foreign["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "shop"});
    let world = lent(&json!({}), vec![foreign, machine("taken", &json!({}))]).await;
    let found = world.finds(FindingId::NameTaken).await;
    assert_eq!(found.object.name, "taken");
    world.run("kubectl delete machines.cluster.x-k8s.io taken-machine -n shop").await;
    world.phase("taken", "Active").await;
    world.pass(Duration::from_mins(5)).await;
    world.is_well().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_controller_is_reported() {
    let objects = fleet(vec![machine("desk", &json!({}))]);
    let world = DoctorFixture::without_controller(START, &objects).await;
    world.pass(Duration::from_mins(10)).await;
    let found = world.finds(FindingId::ControllerNotRunning).await;
    assert!(found.evidence.iter().any(|words| words.contains("shop/desk")), "{found:#?}");
}
