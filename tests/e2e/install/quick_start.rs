//! The commands of the README and of docs/install.md, as they are written there, on clusters in which nothing of 5-Spot is
//! installed, up to its removal.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::{tests, wait};
use kube::Api;
use serde_json::json;

use super::alerts::Alerts;
use super::kubectl::Kubectl;
use crate::startup::{Program, machine};

pub(crate) fn tests() -> Vec<Test> {
    tests![the_quick_start_works_as_written]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(8)))
        .collect()
}

const WITHIN: Duration = Duration::from_mins(2);

/// Commands that take long or need no cluster: the images have their own tests, and the controller is started below.
const ELSEWHERE: [&str; 2] =
    ["cargo xtask image", "cargo run --release -p five-spot-controller -- --log-format=text"];

async fn the_quick_start_works_as_written(_: Arc<TestContext>) -> TestResult {
    let clusters = TestClusters::start_another("quick-start").await?;
    let context = clusters.test_context("desks").await?;
    context.capi_cluster("edge", ControlPlaneOwner::External).await?;
    let result = run_steps(&clusters, &context).await;
    if result.is_err() {
        eprintln!("{}", context.timeline());
    }
    clusters.stop().await?;
    result
}

async fn run_steps(clusters: &TestClusters, context: &TestContext) -> TestResult {
    let commands = commands()?;
    ensure!(commands.iter().any(|line| line.starts_with("kubectl apply -k deploy/single")), "{commands:?}");
    for command in &commands {
        if !ELSEWHERE.contains(&command.as_str()) {
            run(clusters, context, &repository(), command).await?;
        }
    }
    // The first layout: the controller with the account, the roles and the Secret that the commands have made.
    let cluster = clusters.control_plane().management();
    let identity =
        ServiceAccountIdentity::from_manifests(cluster, &[], SYSTEM_NAMESPACE, "5spot-controller").await?;
    let flags = ["--workload-cidr=127.0.0.0/8"];
    let program = Program::start(context.directory(), &identity, "quick-start", &flags).await?;
    program.is_ready().await?;
    let mut object = machine("desk");
    object["metadata"]["namespace"] = context.namespace().into();
    object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-5spot-kubeconfig"});
    object["spec"]["infrastructureSpec"]["spec"] = json!({"address": context.address()});
    Applier::new(cluster.admin()).apply(&object, context.namespace()).await?;
    let objects: Api<ScheduledMachine> = Api::namespaced(cluster.admin(), context.namespace());
    let is_lent = |object: &ScheduledMachine| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.phase == Some(Phase::Active) && status.node_ref.is_some())
    };
    wait::until_present(&objects, "desk", "to have its node", WITHIN, is_lent).await?;
    let metrics = program.metrics().await?;
    let expiry = "fivespot_workload_credential_expiry_timestamp_seconds";
    let reported = metrics.lines().any(|line| {
        line.starts_with(&format!(
            r#"{expiry}{{namespace="{}",secret="edge-5spot-kubeconfig"}}"#,
            context.namespace()
        ))
    });
    ensure!(reported, "no {expiry} in\n{metrics}");

    // Credentials that expire soon cause an alert, until the commands of the guide renew them.
    let guide = workplace(clusters)?;
    let alerts = Alerts::start(&guide, program.metrics_port())?;
    let expiring = "FiveSpotWorkloadCredentialExpiring";
    let for_a_day = "5spot kubeconfig create CLUSTER --namespace NAMESPACE --duration 24h";
    run(clusters, context, &guide, for_a_day).await?;
    alerts.until(expiring, true).await?;
    let shown = alerts.evaluate_dashboard().await?;
    ensure!(shown.iter().any(|expression| expression == "sum(fivespot_machines_active)"), "{shown:?}");

    // The guide, with a lent machine: agents, new credentials, permissions of Prometheus. Its last steps remove everything.
    for block in blocks("## Workload clusters")?.iter().take(2) {
        run(clusters, context, &guide, block).await?;
    }
    alerts.until(expiring, false).await?;
    run(clusters, context, &guide, blocks("## Monitoring")?.first().context("a block")?).await?;
    let uninstalling = blocks("## Uninstalling")?;
    let [machines, installations] = uninstalling.as_slice() else { bail!("two blocks: {uninstalling:?}") };
    run(clusters, context, &guide, machines).await?;
    program.stop().await?;
    alerts.until("FiveSpotControllerMissing", true).await?;

    // The second layout: its role and its variable exist.
    let kubectl = Kubectl::new(clusters.control_plane(), Side::Management);
    for (verb, resource) in
        [("patch", "nodes"), ("delete", "pods"), ("create", "pods --subresource=eviction")]
    {
        let account = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:5spot-controller");
        kubectl.ok(&format!("auth can-i {verb} {resource} --as={account} --all-namespaces")).await?;
    }
    let path = "{.spec.template.spec.containers[0].env[?(@.name==\"MANAGEMENT_NODES_NAMESPACES\")].value}";
    let (value, _) = kubectl
        .ok(&format!("get deployment -n {SYSTEM_NAMESPACE} 5spot-controller -o jsonpath={path}"))
        .await?;
    ensure!(value == context.namespace(), "{value}");
    let prometheus = "--as=system:serviceaccount:monitoring:prometheus-k8s";
    kubectl
        .ok(&format!("auth can-i list endpointslices.discovery.k8s.io {prometheus} -n {SYSTEM_NAMESPACE}"))
        .await?;

    run(clusters, context, &guide, installations).await?;
    let left = format!("namespace/{SYSTEM_NAMESPACE} crd/scheduledmachines.5spot.finos.org");
    for side in [Side::Management, Side::Workload] {
        let kubectl = Kubectl::new(clusters.control_plane(), side);
        let (found, _) = kubectl.ok(&format!("get {left} --ignore-not-found")).await?;
        ensure!(found.is_empty(), "{side:?}: {found}");
    }
    Ok(())
}

/// A directory in which the commands of the guide can leave files, with the manifests where they expect them.
fn workplace(clusters: &TestClusters) -> anyhow::Result<PathBuf> {
    let directory = clusters.control_plane().directory().join("guide");
    std::fs::create_dir(&directory)?;
    std::os::unix::fs::symlink(repository().join("deploy"), directory.join("deploy"))?;
    Ok(directory)
}

/// The blocks of commands in a section of docs/install.md, up to the next chapter.
pub(super) fn blocks(heading: &str) -> anyhow::Result<Vec<String>> {
    let page = std::fs::read_to_string(repository().join("docs/install.md"))?;
    let (_, section) = page.split_once(&format!("\n{heading}\n")).with_context(|| heading.to_owned())?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    Ok(blocks.map(str::to_owned).collect())
}

/// The commands of the sections that try and install 5-Spot, without those that show its results.
fn commands() -> anyhow::Result<Vec<String>> {
    let readme = std::fs::read_to_string(repository().join("README.md"))?;
    let (_, section) = readme.split_once("\n## Try it against your cluster\n").context("no section")?;
    let (section, _) = section.split_once("ScheduledMachines and Machines are in").context("no end")?;
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// Runs commands in a shell, with a name for each placeholder. `cargo run` and `5spot` are the program that was built.
async fn run(clusters: &TestClusters, context: &TestContext, directory: &Path, commands: &str) -> TestResult {
    let program = std::env::current_exe()?.with_file_name("5spot");
    let line = commands
        .replace("cargo run --release --", &program.display().to_string())
        .replace(" NAMESPACE", &format!(" {}", context.namespace()))
        .replace("=NAMESPACE", &format!("={}", context.namespace()))
        .replace("CLUSTER", "edge");
    let control_plane = clusters.control_plane();
    let bin = control_plane.kubectl().parent().context("a directory")?;
    let built = program.parent().context("a directory")?;
    let output = tokio::process::Command::new("sh")
        .args(["-ec", &line])
        .env("KUBECONFIG", control_plane.management().kubeconfig())
        .env("HOME", control_plane.directory())
        .env("PATH", format!("{}:{}:/usr/bin:/bin", bin.display(), built.display()))
        .current_dir(directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{commands}: {said}");
    println!("$ {commands}\n{said}");
    Ok(())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
