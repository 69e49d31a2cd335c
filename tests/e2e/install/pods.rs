//! A node of the management cluster for the pods of the controller, and what they need there to reach the API servers.

use std::net::Ipv4Addr;

use anyhow::Context as _;
use five_spot_scenarios::merge;
use five_spot_testenv::binaries::Binaries;
use five_spot_testenv::cluster::{Cluster, Side};
use five_spot_testenv::node::{NodeBinaries, RealNode};
use five_spot_testenv::process::{Process, ProcessSpec};
use five_spot_testenv::proxy::Proxy;
use five_spot_testenv::test_clusters::TestClusters;
use serde_json::{Value, json};

use super::dns::NameServer;

/// The name of the API servers in their certificates.
const SERVER_NAME: &str = "kubernetes.default.svc";

/// The node, and everything that its pods use of this machine.
pub(super) struct ManagementNode {
    node: RealNode,
    management: Proxy,
    workload: Proxy,
    // End with this.
    _name_server: NameServer,
    _scheduler: Process,
}

impl ManagementNode {
    /// Starts an isolated node, and joins it to the management cluster.
    pub(super) async fn start(clusters: &TestClusters) -> anyhow::Result<Self> {
        let control_plane = clusters.control_plane();
        let node = RealNode::isolated(control_plane, NodeBinaries::from_process()?).await?;
        node.import_archive(&archive("5spot-controller")?).await?;
        let address = node.machine_address();
        let started = Self {
            management: line(address, control_plane.management()).await?,
            workload: line(address, control_plane.workload()).await?,
            _name_server: NameServer::start(address, SERVER_NAME, address).await?,
            _scheduler: scheduler(clusters)?,
            node,
        };
        started
            .node
            .join_cluster(control_plane, Side::Management, "controllers", "none://controllers")
            .await?;
        Ok(started)
    }

    /// The Deployment as its pods can run here: they find the API server by its name, which a name server resolves.
    pub(super) fn adapt(&self, deployment: &mut Value) -> anyhow::Result<()> {
        let spec = &mut deployment["spec"]["template"]["spec"];
        merge(
            spec,
            json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": [self.node.machine_address()]}}),
        );
        let container = &mut spec["containers"][0];
        container["args"] = json!([format!("--workload-cidr={}/32", self.node.machine_address())]);
        let variables = container["env"].as_array_mut().context("variables")?;
        let port = self.management.port().to_string();
        for (name, value) in [("KUBERNETES_SERVICE_HOST", SERVER_NAME), ("KUBERNETES_SERVICE_PORT", &port)] {
            variables.push(json!({"name": name, "value": value}));
        }
        Ok(())
    }

    /// The address of the workload cluster for pods on this node.
    pub(super) fn workload_server(&self) -> String {
        format!("https://{SERVER_NAME}:{}", self.workload.port())
    }

    pub(super) fn logs(&self) -> String {
        self.node.logs()
    }

    /// Ends everything of the node.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        Ok(self.node.stop().await?)
    }
}

/// The archive of an image, which `cargo xtask e2e` has made beside this program.
pub(crate) fn archive(program: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = std::env::current_exe()?.with_file_name("images").join(format!("{program}.oci.tar"));
    anyhow::ensure!(path.is_file(), "{} is missing: run `cargo xtask e2e`", path.display());
    Ok(path)
}

/// A proxy from the pod network to an API server, which listens on loopback only.
async fn line(address: Ipv4Addr, cluster: &Cluster) -> anyhow::Result<Proxy> {
    let port = cluster.server().rsplit(':').next().and_then(|port| port.parse().ok());
    Ok(Proxy::start_at(address, port.context("a port")?).await?)
}

/// A scheduler for the management cluster, which other tests do not need.
fn scheduler(clusters: &TestClusters) -> anyhow::Result<Process> {
    let control_plane = clusters.control_plane();
    let kubeconfig = control_plane.management().kubeconfig().display().to_string();
    let flags = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
    let arguments = flags.map(|flag| format!("--{flag}={kubeconfig}").into());
    let others = ["--secure-port=0", "--leader-elect=false"].map(Into::into);
    Ok(Process::start(&ProcessSpec {
        name: "management-kube-scheduler".into(),
        program: Binaries::from_process()?.kube_scheduler,
        arguments: arguments.into_iter().chain(others).collect(),
        environment: vec![],
        directory: control_plane.directory().to_path_buf(),
    })?)
}
