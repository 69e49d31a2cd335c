//! The program `5spot-reclaim-agent` with a token bound to its node, the shipped roles and the policy in force.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::reclaim::{AgentConfig, CONFIG_KEY, ReclaimRequest, config_map};
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::bound::{self, BoundToken, MACHINE_ID};

pub(crate) fn tests() -> Vec<Test> {
    tests![a_program_of_the_owner_annotates_the_node]
}

const WITHIN: Duration = Duration::from_mins(1);

async fn a_program_of_the_owner_annotates_the_node(context: Arc<TestContext>) -> TestResult {
    let cluster = context.workload();
    bound::install(cluster).await?;
    let node = context.cluster_scoped("desk");
    bound::node(cluster, &node).await?;
    let owners_program = context.directory().join("fs-e2e-java");
    crate::shell::copy_program("/bin/sleep", &owners_program)?;

    let config = AgentConfig { match_commands: vec!["fs-e2e-java".into()], ..AgentConfig::default() };
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config_map(&node)},
        "data": {CONFIG_KEY: config.to_toml()},
    });
    Applier::new(cluster.admin()).apply(&object, SYSTEM_NAMESPACE).await?;
    let agent = AgentProcess::start(&context, &node).await?;
    let _program = Command::new(&owners_program).arg("600").kill_on_drop(true).spawn()?;

    let nodes: Api<Node> = Api::all(cluster.admin());
    let requested = |node: &Node| ReclaimRequest::from_annotations(node.annotations()).is_some();
    let annotated = wait::until_present(&nodes, &node, "to be annotated", WITHIN, requested).await;
    let annotated = annotated.with_context(|| agent.log())?;
    let request = ReclaimRequest::from_annotations(annotated.annotations()).context("a request")?;
    ensure!(request.reason == "process-match: fs-e2e-java", "{request:?}");
    ensure!(request.requested_at.is_some(), "{request:?}");
    ensure!(annotated.annotations().get("kept").map(String::as_str) == Some("annotation"));
    Ok(())
}

/// The agent beside this program, as in a pod on a node. It ends with this.
pub(crate) struct AgentProcess {
    _child: Child,
    folder: PathBuf,
}

impl AgentProcess {
    /// Starts the agent with a token that is bound to a pod on `node`.
    pub(crate) async fn start(context: &TestContext, node: &str) -> anyhow::Result<Self> {
        let cluster = context.workload();
        let bound = BoundToken::on(cluster, node).await?;
        let folder = context.directory().join(node);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("token"), &bound.token)?;
        std::fs::write(folder.join("ca.crt"), certificate_authority(cluster)?)?;
        std::fs::write(folder.join("machine-id"), MACHINE_ID)?;
        Ok(Self { _child: spawn(cluster, node, &folder)?, folder })
    }

    /// The lines that it has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }
}

fn spawn(cluster: &Cluster, node: &str, folder: &Path) -> anyhow::Result<Child> {
    let (host, port) = cluster
        .server()
        .strip_prefix("https://")
        .and_then(|authority| authority.trim_end_matches('/').rsplit_once(':'))
        .context("an address")?;
    let program = std::env::current_exe()?.with_file_name("5spot-reclaim-agent");
    let output = std::fs::File::create(folder.join("agent.log"))?;
    Command::new(program)
        .env_clear()
        .env("NODE_NAME", node)
        .env("MACHINE_ID_PATH", folder.join("machine-id"))
        .env("RECLAIM_STATE_DIR", folder)
        .env("RECLAIM_SERVICE_ACCOUNT_DIR", folder)
        .env("KUBERNETES_SERVICE_HOST", host)
        .env("KUBERNETES_SERVICE_PORT", port)
        .stdin(Stdio::null())
        .stdout(output)
        .kill_on_drop(true)
        .spawn()
        .context("failed to start the agent")
}

/// The certificate authority of a cluster, from its administrator's kubeconfig.
fn certificate_authority(cluster: &Cluster) -> anyhow::Result<Vec<u8>> {
    let text = std::fs::read_to_string(cluster.kubeconfig())?;
    let kubeconfig: Value = serde_saphyr::from_str(&text)?;
    let data = &kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"];
    Ok(base64::engine::general_purpose::STANDARD.decode(data.as_str().context("no authority")?)?)
}
