//! The Helm chart: it renders what the kustomizations contain for the same choice, refuses values that cannot work, and can be
//! installed, changed to another layout, and uninstalled.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::tests;
use serde_json::Value;

use super::helm::{CHART, Helm, template};
use super::kubectl::Kubectl;
use super::object_sets::{Objects, differences};
use super::overlays::until_pods;

pub(crate) fn tests() -> Vec<Test> {
    let rendered = tests![
        the_chart_renders_the_objects_of_the_kustomizations,
        the_chart_refuses_values_that_cannot_work,
    ];
    // With its own clusters: policies and the fence apply to accounts that other tests use.
    let installed = tests![the_chart_is_installed_changed_and_uninstalled];
    let installed = installed.into_iter().map(|test| test.within(Duration::from_mins(6)));
    rendered.into_iter().chain(installed).collect()
}

/// A choice that both the kustomizations and the chart offer.
struct Choice {
    kustomizations: &'static [&'static str],
    with_crds: bool,
    values: &'static str,
}

const CHOICES: [Choice; 12] = [
    Choice { kustomizations: &["deploy/single"], with_crds: true, values: "" },
    Choice { kustomizations: &["deploy/ha"], with_crds: true, values: "--set controller.layout=ha" },
    Choice {
        kustomizations: &["deploy/sharded"],
        with_crds: true,
        values: "--set controller.layout=sharded",
    },
    Choice {
        kustomizations: &["deploy/single-with-agent"],
        with_crds: true,
        values: "--set agent.enabled=true",
    },
    Choice {
        kustomizations: &["deploy/ha-with-agent"],
        with_crds: true,
        values: "--set controller.layout=ha --set agent.enabled=true",
    },
    Choice {
        kustomizations: &["deploy/sharded-with-agent"],
        with_crds: true,
        values: "--set controller.layout=sharded --set agent.enabled=true",
    },
    // The administrator applies the CRDs, and the roles in each namespace.
    Choice {
        kustomizations: &["deploy/namespaced"],
        with_crds: false,
        values: "--set controller.watchNamespaces={team-a}",
    },
    Choice {
        kustomizations: &["deploy/workload-cluster"],
        with_crds: false,
        values: "--set controller.enabled=false --set agent.enabled=true --set workloadAccess.enabled=true",
    },
    Choice {
        kustomizations: &["deploy/node-agent"],
        with_crds: false,
        values: "--set controller.enabled=false --set agent.enabled=true",
    },
    Choice {
        kustomizations: &["deploy/node-agent-no-capability"],
        with_crds: false,
        values: "--set controller.enabled=false --set agent.enabled=true --set agent.detector=no-capability",
    },
    Choice {
        kustomizations: &["deploy/node-agent-poll"],
        with_crds: false,
        values: "--set controller.enabled=false --set agent.enabled=true --set agent.detector=poll",
    },
    Choice {
        kustomizations: &["deploy/single", "deploy/monitoring"],
        with_crds: true,
        values: "--set monitoring.serviceMonitor.enabled=true --set monitoring.prometheusRule.enabled=true \
                 --set monitoring.dashboard.enabled=true",
    },
];

async fn the_chart_renders_the_objects_of_the_kustomizations(context: Arc<TestContext>) -> TestResult {
    let control_plane = context.clusters().control_plane();
    let helm = Helm::new(control_plane, Side::Management)?;
    let kubectl = Kubectl::new(control_plane, Side::Management);
    for Choice { kustomizations, with_crds, values } in CHOICES {
        let mut expected = Vec::new();
        for folder in kustomizations {
            expected.extend(kubectl.build(folder).await?);
        }
        if kustomizations == ["deploy/namespaced"] {
            expected.extend(roles_of_namespace("team-a")?);
        }
        compare(values, expected, helm.render(with_crds, values).await?)?;
        helm.lint(values).await?;
    }

    // Nodes in the management cluster: the README sets the variable on the Deployment, the chart in the ConfigMap.
    let mut expected = kubectl.build("deploy/single").await?;
    expected.extend(kubectl.build("deploy/rbac-nodes").await?);
    let config = expected.iter_mut().find(|object| object["kind"] == "ConfigMap").context("a ConfigMap")?;
    config["data"]["MANAGEMENT_NODES_NAMESPACES"] = "team-a,team-b".into();
    let values = "--set controller.managementNodesNamespaces={team-a,team-b}";
    compare(values, expected, helm.render(true, values).await?)?;
    namespaced_with_nodes(&kubectl, &helm).await
}

/// Chosen namespaces, and Nodes in the management cluster: the controller may then write `ConfigMaps` of its namespace, so the
/// policy that restricts this has to be there.
async fn namespaced_with_nodes(kubectl: &Kubectl, helm: &Helm) -> anyhow::Result<()> {
    let mut roles = kubectl.build("deploy/namespaced").await?;
    roles.extend(roles_of_namespace("team-a")?);
    roles.extend(kubectl.build("deploy/rbac-nodes").await?);
    let policies = kubectl.build("deploy/policies").await?;
    ensure!(policies.iter().any(|policy| policy["kind"] == "ValidatingAdmissionPolicy"), "no policy");
    roles.extend(policies);
    let config = roles.iter_mut().find(|object| object["kind"] == "ConfigMap").context("a ConfigMap")?;
    config["data"]["MANAGEMENT_NODES_NAMESPACES"] = "team-a".into();
    let values =
        "--set controller.watchNamespaces={team-a} --set controller.managementNodesNamespaces={team-a}";
    compare(values, roles, helm.render(false, values).await?)?;

    // Agents in the management cluster need the same permissions.
    let values = "--set controller.watchNamespaces={team-a} --set agent.enabled=true";
    let rendered = helm.render(false, values).await?;
    for policy in kubectl.build("deploy/policies").await? {
        let is_it = |object: &&Value| {
            object["kind"] == policy["kind"] && object["metadata"]["name"] == policy["metadata"]["name"]
        };
        ensure!(
            rendered.iter().any(|object| is_it(&object)),
            "helm template {values}: no {}",
            policy["kind"]
        );
    }
    Ok(())
}

/// The Role and its binding that an administrator applies in a watched namespace.
fn roles_of_namespace(namespace: &str) -> anyhow::Result<Vec<Value>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut roles = manifests::read(&root.join("deploy/rbac-namespaced/namespace.yaml"))?;
    for role in &mut roles {
        role["metadata"]["namespace"] = namespace.into();
    }
    Ok(roles)
}

fn compare(values: &str, expected: Vec<Value>, rendered: Vec<Value>) -> anyhow::Result<()> {
    let differences = differences(&Objects::new(expected)?, &Objects::new(rendered)?);
    ensure!(differences.is_empty(), "helm template {values} differs:\n{}", differences.join("\n"));
    Ok(())
}

async fn the_chart_refuses_values_that_cannot_work(context: Arc<TestContext>) -> TestResult {
    let helm = Helm::new(context.clusters().control_plane(), Side::Management)?;
    let here = "--namespace 5spot-system";
    for (flags, message) in [
        ("--namespace elsewhere".to_owned(), "5-Spot runs in the namespace 5spot-system, not in elsewhere"),
        (format!("{here} --set workloadAccess.enabled=true"), "workloadAccess is for workload clusters"),
        (format!("{here} --set controller.enabled=false"), "nothing to install"),
        (
            format!(
                "{here} --set controller.layout=ha --set controller.leaderElection.renewDeadlineSeconds=15"
            ),
            "renewDeadlineSeconds must be less than leaseDurationSeconds",
        ),
        (format!("{here} --set controller.layout=twice"), "layout"),
        (format!("{here} --set controller.replicas=2"), "replicas"),
        (format!("{here} --set controller.layout=ha --set controller.replicas=1"), "replicas"),
        (format!("{here} --set controller.config.METRICS_PORT=9090"), "METRICS_PORT"),
        (format!("{here} --set controler.layout=ha"), "controler"),
        (format!("{here} --set agent.detector=auto"), "detector"),
        (format!("{here} --set monitoring.prometheusRule.runbookUrl=https://wiki.example"), "runbookUrl"),
    ] {
        let said = helm.refused(&template(&flags)).await?;
        ensure!(said.contains(message), "helm template {flags}: {said}");
    }
    Ok(())
}

async fn the_chart_is_installed_changed_and_uninstalled(_: Arc<TestContext>) -> TestResult {
    let clusters = TestClusters::start_another("chart").await?;
    let cluster = clusters.control_plane().management();
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Management);
    let helm = Helm::new(clusters.control_plane(), Side::Management)?;

    // As docs/install.md says.
    kubectl.ok("create namespace 5spot-system").await?;
    kubectl.ok("label namespace 5spot-system pod-security.kubernetes.io/enforce=restricted").await?;
    let notes = helm.ok(&format!("install 5spot {CHART} --namespace 5spot-system")).await?;
    ensure!(notes.contains("5spot kubeconfig create CLUSTER"), "{notes}");
    ensure!(!notes.contains("kubectl label namespace"), "the namespace has its label: {notes}");
    until_pods(cluster, "app=5spot-controller", 1).await?;
    kubectl.ok("get crd scheduledmachines.5spot.finos.org").await?;

    kubectl.ok(&format!("apply --server-side --force-conflicts -f {CHART}/crds")).await?;
    let upgrade = format!("upgrade 5spot {CHART} --namespace 5spot-system");
    helm.ok(&format!("{upgrade} --set controller.layout=ha")).await?;
    kubectl.ok("get validatingadmissionpolicy,validatingadmissionpolicybinding 5spot-fence").await?;
    // Another layout: Helm removes what it does not have.
    let notes =
        helm.ok(&format!("{upgrade} --set controller.layout=sharded --set agent.enabled=true")).await?;
    ensure!(notes.contains("enforces the Pod Security level restricted, so no agent can start"), "{notes}");
    until_pods(cluster, "app=5spot-controller,apps.kubernetes.io/pod-index", 3).await?;
    is_gone(&kubectl, "validatingadmissionpolicy 5spot-fence").await?;
    is_gone(&kubectl, "deployment 5spot-controller -n 5spot-system").await?;

    helm.ok("uninstall 5spot --namespace 5spot-system").await?;
    is_gone(&kubectl, "clusterrole 5spot-controller").await?;
    is_gone(&kubectl, "statefulset 5spot-controller -n 5spot-system").await?;
    // Deleting the CRD would delete every ScheduledMachine.
    kubectl.ok("get crd scheduledmachines.5spot.finos.org").await?;
    after_the_command_line(&clusters).await?;
    Ok(clusters.stop().await?)
}

/// In a workload cluster `5spot kubeconfig create` may have come first.
async fn after_the_command_line(clusters: &TestClusters) -> TestResult {
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Workload);
    let helm = Helm::new(clusters.control_plane(), Side::Workload)?;
    kubectl.ok("create namespace 5spot-system").await?;
    kubectl.ok("create serviceaccount 5spot-controller -n 5spot-system").await?;
    kubectl.ok("apply -k deploy/rbac-nodes").await?;
    let values = "--set controller.enabled=false --set agent.enabled=true --set workloadAccess.enabled=true";
    let install = format!("install 5spot {CHART} --namespace 5spot-system --skip-crds {values}");
    let said = helm.refused(&install).await?;
    ensure!(said.contains("cannot be imported into the current release"), "{said}");
    helm.ok(&format!("{install} --take-ownership")).await?;
    kubectl.ok("get daemonset -n 5spot-system 5spot-reclaim-agent").await.map(drop)
}

async fn is_gone(kubectl: &Kubectl, object: &str) -> anyhow::Result<()> {
    let found = kubectl.ok(&format!("get {object} --ignore-not-found")).await?.0;
    ensure!(found.is_empty(), "{object} still exists: {found}");
    Ok(())
}
