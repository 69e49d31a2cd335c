//! The faults of an installation with the messages of the real components, and the same commands without
//! faults.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_standins::provider_crds;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::shell::{Shell, five_spot};
use crate::startup::{Bare, Program, machine, shipped_definition, shipped_rules};

/// The time limit: long enough for a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

/// The finding that no controller was found is expected in a cluster without its pods.
const WITHOUT_PODS: &str = "controller-not-running";

pub(crate) fn tests() -> Vec<Test> {
    tests![an_installation_is_diagnosed_while_it_grows]
}

/// The output of a command about the cluster, and its exit code.
async fn run_command(bare: &Bare, words: &[&str]) -> anyhow::Result<(Value, i32)> {
    let kubeconfig = bare.control_plane().management().kubeconfig();
    let output = Command::new(five_spot()?)
        .args(words)
        .args(["-o", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .env_clear()
        .output()
        .await
        .context("failed to run 5spot")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).with_context(|| format!("{words:?}: {stderr}"))?;
    Ok((answer, output.status.code().unwrap_or(-1)))
}

/// Waits until the doctor reports exactly these findings, besides the missing pods. Returns its output.
async fn finds(bare: &Bare, expected: &[&str]) -> anyhow::Result<Value> {
    let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
    let begun = tokio::time::Instant::now();
    loop {
        let (answer, code) = run_command(bare, &["doctor", "-A"]).await?;
        let findings = answer["findings"].as_array().cloned().unwrap_or_default();
        let ids =
            findings.iter().filter_map(|finding| finding["id"].as_str()).filter(|id| *id != WITHOUT_PODS);
        let ids: BTreeSet<String> = ids.map(str::to_owned).collect();
        if ids == expected {
            let has_errors = findings.iter().any(|finding| finding["severity"] == "error");
            ensure!(code == i32::from(has_errors), "exit code {code}: {answer:#}");
            return Ok(answer);
        }
        ensure!(begun.elapsed() < WITHIN, "expected {expected:?}, found {answer:#}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn an_installation_is_diagnosed_while_it_grows(_: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("doctor").await?;
    finds(&bare, &["crd-missing", "capi-missing"]).await?;
    bare.define(&shipped_definition()).await?;
    finds(&bare, &["capi-missing"]).await?;
    bare.install_cluster_api().await?;
    finds(&bare, &[]).await?;

    // A rule of the shipped role that this one lacks.
    let mut rules = shipped_rules()?;
    let machines =
        rules.iter_mut().find(|rule| rule["resources"] == json!(["machines"])).context("a rule")?;
    machines["verbs"] = json!(["get", "list", "watch", "create", "patch"]);
    let identity = bare.account("5spot-controller", &Value::Array(rules)).await?;
    let answer = finds(&bare, &["rbac-missing"]).await?;
    let evidence = answer["findings"].to_string();
    ensure!(evidence.contains("delete machines in API group"), "{evidence}");
    let finding = answer["findings"].as_array().into_iter().flatten().find(|one| one["id"] == "rbac-missing");
    let fix = finding.and_then(|finding| finding["fix"][0]["command"].as_str()).context("a fix")?;
    Shell::new(bare.control_plane(), Side::Management)?.ok(fix).await?;
    finds(&bare, &[]).await?;

    // The controller, and a machine whose Cluster does not exist, then one whose kubeconfig does not.
    manifests::apply_crds(&bare.admin(), &provider_crds(), WITHIN).await?;
    let program = Program::start(bare.directory(), &identity, "doctor", &[]).await?;
    bare.apply(&machine("desk")).await?;
    let mut all = shipped_rules()?;
    all.push(json!({"apiGroups": ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"],
        "resources": ["k0sworkerconfigs", "remotemachines"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}));
    all.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}));
    bare.account("5spot-controller", &Value::Array(all)).await?;
    finds(&bare, &["reference-not-found"]).await?;
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "edge", "namespace": "default"}, "spec": {"paused": true}});
    bare.apply(&cluster).await?;
    finds(&bare, &["kubeconfig-unusable", "paused"]).await?;

    // One machine in detail, by the same decision.
    let (answer, code) = run_command(&bare, &["explain", "desk", "-n", "default"]).await?;
    ensure!(code == 0 && answer["phase"] == "Error" && answer["wanted"] == true, "{answer:#}");
    let blockers = answer["blockers"].to_string();
    ensure!(blockers.contains("there is no Secret edge-kubeconfig"), "{blockers}");
    program.stop().await?;
    bare.stop().await
}
