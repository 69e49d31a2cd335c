//! The commands of the README, as they are written there, on clusters in which nothing of 5-Spot is installed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
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
const ELSEWHERE: [&str; 2] = ["cargo xtask image", "cargo run --release -- --log-format=text"];

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
            run(clusters, context, command).await?;
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
    program.stop().await?;

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
    Ok(())
}

/// The commands of the section that installs 5-Spot, without those that show its results.
fn commands() -> anyhow::Result<Vec<String>> {
    let readme = std::fs::read_to_string(repository().join("README.md"))?;
    let (_, section) = readme.split_once("\n## Run it in a cluster\n").context("no section")?;
    let (section, _) = section.split_once("ScheduledMachines and Machines are in").context("no end")?;
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// Runs a command of the README in a shell, with a name for each placeholder. `cargo run` is the program that was built.
async fn run(clusters: &TestClusters, context: &TestContext, command: &str) -> TestResult {
    let program = std::env::current_exe()?.with_file_name("5spot");
    let line = command
        .replace("cargo run --release --", &program.display().to_string())
        .replace("NAMESPACES=NAMESPACE", &format!("NAMESPACES={}", context.namespace()))
        .replace("--namespace NAMESPACE", &format!("--namespace {}", context.namespace()))
        .replace("CLUSTER", "edge");
    let control_plane = clusters.control_plane();
    let bin = control_plane.kubectl().parent().context("a directory")?;
    let output = tokio::process::Command::new("sh")
        .args(["-ec", &line])
        .env("KUBECONFIG", control_plane.management().kubeconfig())
        .env("HOME", control_plane.directory())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .current_dir(repository())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command}: {said}");
    println!("$ {command}\n{said}");
    Ok(())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
