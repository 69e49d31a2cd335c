//! Every command of the pages under `docs/troubleshooting` is run by a shell against a real API server that has all
//! objects that the pages mention. No controller runs there, so that one command does not depend on another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_standins::provider_crds;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{probe, tests};
use serde_json::{Value, json};

use crate::shell::Shell;
use crate::startup::{Bare, machine};

/// The time limit: long enough for a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

pub(crate) fn tests() -> Vec<Test> {
    tests![every_command_of_the_pages_works]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(8)))
        .collect()
}

/// The parts of a page that can be run.
pub(super) struct Page {
    id: String,
    evidence: Vec<String>,
    rest: Vec<String>,
}

impl Page {
    pub(super) fn read(id: &str) -> anyhow::Result<Self> {
        let path = folder().join(format!("{id}.md"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (before, rest) = text.split_once("## Fix").context("a section Fix")?;
        Ok(Self { id: id.to_owned(), evidence: commands(before), rest: commands(rest) })
    }

    /// The commands that show the symptom.
    pub(super) fn evidence(&self) -> &[String] {
        &self.evidence
    }

    fn commands(&self) -> impl Iterator<Item = &String> {
        self.evidence.iter().chain(&self.rest)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting")
}

/// The ids that have a page.
fn ids() -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ids.extend(name.strip_suffix(".md").map(str::to_owned));
    }
    ids.sort();
    Ok(ids)
}

/// The commands of the fenced blocks. A line that ends with a backslash continues on the next line.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let lines = blocks
        .flat_map(|block| block.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<String>>());
    lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect()
}

/// The values for the placeholders of pages.
pub(super) struct Words<'a> {
    pub(super) namespace: &'a str,
    pub(super) cluster: &'a str,
    pub(super) node: &'a str,
    pub(super) pod: &'a str,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Self { namespace: "shop", cluster: "shop", node: "desk-1", pod: "web-0" }
    }
}

impl Words<'_> {
    /// Replaces the placeholders in a command. They are the words in capitals.
    pub(super) fn fill(&self, command: &str) -> String {
        let mut filled = String::new();
        for word in command.split_inclusive(|byte: char| !byte.is_ascii_uppercase() && byte != '_') {
            let end = word.find(|byte: char| !byte.is_ascii_uppercase() && byte != '_').unwrap_or(word.len());
            let (word, separator) = word.split_at(end);
            filled += match word {
                "NAME" => "desk",
                "MACHINE" => "desk-machine",
                "PDB" => "web",
                "KEY" => "example.org/lent",
                "EFFECT" => "NoSchedule",
                "NAMESPACE" => self.namespace,
                "CLUSTER" => self.cluster,
                "NODE" => self.node,
                "POD" => self.pod,
                other => other,
            };
            filled += separator;
        }
        filled
    }
}

/// A `grep` without matches counts as success, and so does a doctor with findings.
const PRELUDE: &str = r#"grep() { command grep "$@" || [ $? = 1 ]; }
5spot() { command 5spot "$@" || [ "$? $1" = "1 doctor" ]; }
"#;

/// The outcome of a command.
#[derive(Debug, PartialEq)]
enum Expected {
    Success,
    /// The command never ends.
    Endless,
    /// The command is for the machine of a node, or for a third-party tool: only its syntax is checked.
    Syntax,
    /// The command needs something that a bare API server does not have: it is valid, but its result is an
    /// error.
    Answer(&'static str),
}

/// The starts of commands that are not for a cluster.
const ELSEWHERE: [&str; 3] = ["cat /proc/", "grep CONFIG_", "clusterctl "];

fn expected(command: &str) -> Expected {
    if command.contains("/proxy/") {
        // Pods without a kubelet have no address.
        Expected::Answer("Error from server")
    } else if command.contains("kubectl top") {
        Expected::Answer("Metrics API not available")
    } else if ELSEWHERE.iter().any(|begin| command.starts_with(begin)) {
        Expected::Syntax
    } else if command.contains(" -w") {
        Expected::Endless
    } else {
        Expected::Success
    }
}

async fn every_command_of_the_pages_works(context: Arc<TestContext>) -> TestResult {
    let bare = Bare::start("pages").await?;
    let tried = try_pages(&bare, &context).await;
    bare.stop().await?;
    tried
}

async fn try_pages(bare: &Bare, context: &TestContext) -> TestResult {
    let shell = Shell::new(bare.control_plane(), Side::Management)?;
    shell.ok("kubectl apply --server-side -k deploy/single-with-agent/").await?;
    bare.install_cluster_api().await?;
    manifests::apply_crds(&bare.admin(), &provider_crds(), WITHIN).await?;
    let admin = bare.admin();
    let documented = probe::until_documented(&admin, "5spot.finos.org/v1alpha1", "ScheduledMachine", WITHIN);
    ensure!(documented.await, "the server does not document our kinds");
    let (mut failures, mut count) = (Vec::new(), 0);
    let ids = ids()?;
    for id in &ids {
        let page = Page::read(id)?;
        create_objects(bare).await.with_context(|| format!("before {}", page.id))?;
        for command in page.commands() {
            count += 1;
            if let Err(error) = try_command(&shell, &Words::default().fill(command)).await {
                failures.push(format!("{}: {error:#}", page.id));
            }
            if command.contains(" delete ") {
                create_objects(bare).await.with_context(|| format!("after {command}"))?;
            }
        }
    }
    context.note(format!("{count} commands of {} pages", ids.len()));
    ensure!(failures.is_empty(), "{} of {count} commands:\n{}", failures.len(), failures.join("\n"));
    ensure!(count > 120, "only {count} commands were found");
    Ok(())
}

async fn try_command(shell: &Shell, command: &str) -> TestResult {
    let (expected, script) = (expected(command), format!("{PRELUDE}{command}"));
    match expected {
        Expected::Success => shell.ok(&script).await.map(drop),
        // A shell that only parses the command.
        Expected::Syntax => shell.ok(&format!("set -n\n{script}")).await.map(drop),
        Expected::Endless => {
            let output = shell.run(&format!("{PRELUDE}timeout 2 {command}")).await?;
            ensure!(output.status.code() == Some(124), "{command}: {output:?}");
            Ok(())
        }
        Expected::Answer(words) => {
            let output = shell.run(&script).await?;
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(!output.status.success() && stderr.contains(words), "{command}: {stderr}");
            Ok(())
        }
    }
}

/// Creates the objects that the pages mention, and those that their commands have deleted.
async fn create_objects(bare: &Bare) -> TestResult {
    let mut applier = Applier::new(bare.admin());
    for object in objects() {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("shop").to_owned();
        applier.apply(&object, &namespace).await?;
    }
    Ok(())
}

fn objects() -> Vec<Value> {
    let words = Words::default();
    let namespaced = |kind: [&str; 2], namespace: &str, name: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name, "namespace": namespace},
        });
        five_spot_scenarios::merge(&mut object, rest);
        object
    };
    let mut desk = machine("desk");
    five_spot_scenarios::merge(
        &mut desk,
        json!({"metadata": {"namespace": "shop", "finalizers": [five_spot_api::names::FINALIZER]}}),
    );
    // The policies of 5spot-system admit only pods of the controller that meet the level `restricted`.
    let pod = json!({"spec": {
        "serviceAccountName": "5spot-controller",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main", "image": "example.org/app:1",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    }});
    let labels = json!({"cluster.x-k8s.io/cluster-name": "shop"});
    let lease = json!({"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 15}});
    let selector = json!({"spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    let capi_machine = json!({"metadata": {"labels": labels}, "spec": {
        "clusterName": "shop", "bootstrap": {"dataSecretName": "x"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "RemoteMachine", "name": "desk-infra"},
    }});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        namespaced(["v1", "ServiceAccount"], "shop", "5spot-controller", json!({})),
        desk,
        namespaced(["v1", "Pod"], "shop", words.pod, pod.clone()),
        namespaced(["v1", "Pod"], "5spot-system", words.pod, pod),
        namespaced(["v1", "Secret"], "shop", "shop-kubeconfig", json!({"stringData": {"value": "{}"}})),
        namespaced(
            ["v1", "ConfigMap"],
            "5spot-system",
            "reclaim-agent-desk-1",
            json!({"data": {"reclaim.toml": ""}}),
        ),
        namespaced(["coordination.k8s.io/v1", "Lease"], "5spot-system", "5spot-leader", lease.clone()),
        namespaced(["coordination.k8s.io/v1", "Lease"], "5spot-system", "5spot-machine-1", lease),
        namespaced(["policy/v1", "PodDisruptionBudget"], "shop", "web", selector),
        namespaced(
            ["cluster.x-k8s.io/v1beta2", "Cluster"],
            "shop",
            "shop",
            json!({"spec": {"paused": true}}),
        ),
        namespaced(["cluster.x-k8s.io/v1beta2", "Machine"], "shop", "desk-machine", capi_machine),
        namespaced(
            ["infrastructure.cluster.x-k8s.io/v1beta2", "RemoteMachine"],
            "shop",
            "desk-infra",
            json!({"spec": {"address": "192.0.2.1", "port": 22}}),
        ),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": words.node},
            "spec": {"taints": [{"key": "example.org/lent", "effect": "NoSchedule"}]}}),
    ]
}
