//! `5spot doctor` for a machine on the real node, with its fixes applied as they are printed.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::ScheduledMachine;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::TestResult;
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::TestContext;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::shell::Shell;

/// The doctor expects no agent in the first three minutes of a node.
const WITHIN: Duration = Duration::from_mins(5);
const ASK_EVERY: Duration = Duration::from_secs(1);
const MACHINE: &str = "desk";

/// The doctor of a cluster in which the node is lent. No controller works on the object: it would repair the faults.
pub(super) struct Doctor<'a> {
    context: &'a TestContext,
    management: Shell,
    workload: Shell,
    node: String,
}

impl<'a> Doctor<'a> {
    /// Records a loan of the node, as the controller does.
    pub(super) async fn of(context: &'a TestContext, node: &str) -> anyhow::Result<Self> {
        let admin = context.management().admin();
        let kubeconfig = std::fs::read_to_string(context.workload().kubeconfig())?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-kubeconfig"},
            "stringData": {"value": kubeconfig},
        });
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
            "metadata": {"name": MACHINE},
            "spec": {
                "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]},
                "clusterName": "edge",
                "killIfCommands": ["java"],
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                    "spec": {"address": "diagnoses", "port": 22},
                },
            },
        });
        let mut applier = Applier::new(admin.clone());
        applier.apply_all(&[secret, object], context.namespace()).await?;

        let found = Api::<Node>::all(context.workload().admin()).get(node).await?;
        let scheduled = json!({
            "type": "Scheduled", "status": "True", "reason": "InWindow", "message": "lent",
            "lastTransitionTime": context.begun().to_string(),
        });
        let reference =
            json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": found.uid().unwrap_or_default()});
        let status = json!({"status": {"phase": "Active", "nodeRef": reference, "conditions": [scheduled]}});
        let machines: Api<ScheduledMachine> = Api::namespaced(admin, context.namespace());
        machines.patch_status(MACHINE, &PatchParams::default(), &Patch::Merge(status)).await?;

        let control_plane = context.clusters().control_plane();
        Ok(Self {
            context,
            management: Shell::new(control_plane, Side::Management)?,
            workload: Shell::new(control_plane, Side::Workload)?,
            node: node.to_owned(),
        })
    }

    /// The findings with this id that name the node.
    async fn findings(&self, id: &str) -> anyhow::Result<Vec<Value>> {
        let command = format!("5spot doctor -n {} -o json", self.context.namespace());
        let output = self.management.run(&command).await?;
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let findings = answer["findings"].as_array().context("findings")?.iter();
        let is_it = |finding: &&Value| finding["id"] == id && finding.to_string().contains(&self.node);
        Ok(findings.filter(is_it).cloned().collect())
    }

    /// Waits until the doctor reports this, and returns the finding.
    pub(super) async fn finds(&self, id: &str) -> anyhow::Result<Value> {
        let found = async {
            loop {
                if let Some(finding) = self.findings(id).await?.pop() {
                    return anyhow::Ok(finding);
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        let finding =
            tokio::time::timeout(WITHIN, found).await.with_context(|| format!("no finding {id}"))??;
        self.context.note(format!("{finding:#}"));
        Ok(finding)
    }

    /// Runs the printed command that begins with this text, and waits until the finding is gone.
    pub(super) async fn fix(&self, finding: &Value, begins: &str) -> TestResult {
        let command = command_of(finding, begins).with_context(|| format!("no fix {begins}: {finding:#}"))?;
        // Nodes and agents are in the workload cluster.
        self.workload.ok(command).await?;
        self.until_gone(finding).await.with_context(|| format!("{command} does not help"))
    }

    /// Waits until the doctor no longer reports this.
    pub(super) async fn until_gone(&self, finding: &Value) -> TestResult {
        let id = finding["id"].as_str().unwrap_or_default();
        let begun = tokio::time::Instant::now();
        loop {
            let left = self.findings(id).await?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(begun.elapsed() < WITHIN, "{id} stays: {left:#?}");
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

/// The command of a finding that begins with this text.
fn command_of<'a>(finding: &'a Value, begins: &str) -> Option<&'a str> {
    let fixes = finding["fix"].as_array()?.iter();
    fixes.filter_map(|fix| fix["command"].as_str()).find(|command| command.starts_with(begins))
}
