//! The one real node of this program, used by one test at a time.

use anyhow::Context as _;
use five_spot_testenv::node::{Image, NodeBinaries, RealNode};
use five_spot_testenv::test_clusters::TestContext;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// The image of the agent in the archive of `cargo xtask image`, and as the shipped `DaemonSet` names it without
/// kustomize.
const AGENT_IMAGE_IN_ARCHIVE: &str =
    concat!("docker.io/library/5spot-reclaim-agent:", env!("CARGO_PKG_VERSION"));
const AGENT_IMAGE: &str = "docker.io/library/5spot-reclaim-agent:latest";
/// The image of the pods of tenants: a shell, and a program called `java`.
const TENANT_IMAGE: &str = "localhost/5spot/tenant:1";

/// Started by the first test that needs it; it ends with the control plane.
static NODE: Mutex<Option<RealNode>> = Mutex::const_new(None);

/// A lent machine, for the exclusive use of one test until this is dropped.
pub(crate) struct Desk<'a> {
    node: MutexGuard<'static, Option<RealNode>>,
    context: &'a TestContext,
    /// The name of its Node.
    pub(super) name: String,
}

impl<'a> Desk<'a> {
    /// Waits until the machine is free. It is started if it does not run, and has not joined the cluster yet.
    pub(crate) async fn take(context: &'a TestContext) -> anyhow::Result<Self> {
        let mut node = NODE.lock().await;
        if node.is_none() {
            *node = Some(start(context).await?);
        }
        Ok(Self { node, context, name: context.cluster_scoped("desk") })
    }

    /// Joins the cluster under its name, as the machine of this provider id, and waits until it is Ready.
    pub(super) async fn join(&self, provider_id: &str) -> anyhow::Result<Node> {
        let node = self.node()?;
        let joined = node.join(self.context.clusters().control_plane(), &self.name, provider_id).await?;
        self.context.note(format!("the kubelet of {} is Ready", self.name));
        Ok(joined)
    }

    /// Stops the kubelet.
    pub(crate) async fn leave(&self) -> anyhow::Result<()> {
        self.node()?.leave().await;
        Ok(())
    }

    /// The machine id of the node.
    pub(super) fn machine_id(&self) -> anyhow::Result<&str> {
        Ok(self.node()?.machine_id())
    }

    /// The last lines of the logs of kubelet and containerd, for a test that fails.
    pub(super) fn logs(&self) -> String {
        self.node.as_ref().map(RealNode::logs).unwrap_or_default()
    }

    /// Makes a pod of a tenant on the node that runs this command.
    pub(super) async fn tenant(&self, name: &str, command: &[&str]) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.context.workload().admin(), self.context.namespace());
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": self.name,
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": "tenant", "image": TENANT_IMAGE, "imagePullPolicy": "Never", "command": command,
                }],
            },
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        Ok(())
    }

    /// Writes a seccomp profile where the kubelet looks for those of pods, and returns its name there.
    pub(super) fn seccomp_profile(&self, name: &str, profile: &Value) -> anyhow::Result<String> {
        let folder = self.node()?.kubelet_directory().join("seccomp");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), profile.to_string())?;
        Ok(name.to_owned())
    }

    /// The machine itself.
    pub(crate) fn machine(&self) -> anyhow::Result<&RealNode> {
        self.node()
    }

    fn node(&self) -> anyhow::Result<&RealNode> {
        self.node.as_ref().context("the node was not started")
    }
}

async fn start(context: &TestContext) -> anyhow::Result<RealNode> {
    let binaries = NodeBinaries::from_process()?;
    let busybox = binaries.busybox.clone();
    let node = RealNode::on_host(context.clusters().control_plane(), binaries).await?;
    node.import_archive(&crate::install::archive("5spot-reclaim-agent")?).await?;
    node.tag(AGENT_IMAGE_IN_ARCHIVE, AGENT_IMAGE).await?;
    // The owner's program is a copy of the same file, so that only the place where it runs differs.
    let tenant = Image::new(TENANT_IMAGE, &["/bin/sh"]).program("bin/busybox", &busybox)?;
    node.import(tenant.link("bin/sh", "busybox").program("bin/java", "/bin/sleep".as_ref())?).await?;
    Ok(node)
}
