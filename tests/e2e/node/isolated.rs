//! Two isolated nodes at the same time, with the agents of the overlay that polls: no events, no host network, no capability,
//! not root, and the API server at the address that the kubelet tells to every pod.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::reclaim::{CONFIG_KEY, ReclaimRequest, config_map};
use five_spot_scenarios::merge;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::node::{Image, NodeBinaries, RealNode};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{tests, wait};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::agent_pod::{LABEL, WITHIN, limit_pods};
use super::owner::copy_of_sleep;
use crate::install::{Kubectl, archive};

pub(crate) fn tests() -> Vec<Test> {
    tests![agents_that_poll_see_the_programs_of_their_own_node]
        .into_iter()
        .map(|test| test.within(Duration::from_mins(6)))
        .collect()
}

/// Not `java`: the agents of nodes on the host see the programs of isolated nodes as well.
const PROGRAM: &str = "polled-program";
const IMAGE: &str = "localhost/5spot/polled:1";
/// The label by which the DaemonSet of this test finds its nodes.
const PLACE: &str = "e2e.5spot.finos.org/place";
/// Ten times the interval of polling.
const NOTHING_FOR: Duration = Duration::from_millis(2500);

async fn agents_that_poll_see_the_programs_of_their_own_node(context: Arc<TestContext>) -> TestResult {
    crate::agent::install(context.workload()).await?;
    limit_pods(&context).await?;
    let (owners, tenants) =
        tokio::try_join!(IsolatedDesk::start(&context, "owner"), IsolatedDesk::start(&context, "tenant"))?;
    let agents = Agents { context: &context, name: context.cluster_scoped("agents") };
    let result = run_steps(&agents, &owners, &tenants).await;
    let logs = format!("{}\n{}", owners.node.logs(), tenants.node.logs());
    let removed = agents.remove().await;
    for desk in [owners, tenants] {
        desk.stop(&context).await?;
    }
    result.and(removed).context(logs)
}

async fn run_steps(agents: &Agents<'_>, owners: &IsolatedDesk, tenants: &IsolatedDesk) -> TestResult {
    let context = agents.context;
    for desk in [owners, tenants] {
        desk.configure(context).await?;
    }
    agents.install().await?;
    agents.until_ready(2).await?;
    for desk in [owners, tenants] {
        let state = agents.probe(&desk.name).await?;
        ensure!(state["activity"] == "armed" && state["detector"] == "poll", "{}: {state}", desk.name);
    }
    ensure!(owners.node.machine_id() != tenants.node.machine_id(), "one machine id for two nodes");

    tenants.run_in_a_pod(context).await?;
    let program = copy_of_sleep(context, PROGRAM)?;
    let _program = owners.node.run(PROGRAM, &program, vec!["3600".into()])?;
    let nodes: Api<Node> = Api::all(context.workload().admin());
    let requested = |node: &Node| ReclaimRequest::from_annotations(node.annotations()).is_some();
    let node = wait::until_present(&nodes, &owners.name, "to be annotated", WITHIN, requested).await?;
    let request = ReclaimRequest::from_annotations(node.annotations()).context("a request")?;
    ensure!(request.reason == format!("process-match: {PROGRAM}"), "{request:?}");

    // The program of the owner of another machine, and the same one in a pod, do nothing.
    let untouched = |node: Option<&Node>| node.is_some_and(|node| !requested(node));
    wait::while_lasting(&nodes, &tenants.name, "being left alone", NOTHING_FOR, untouched).await?;
    let state = agents.probe(&tenants.name).await?;
    ensure!(state["activity"] == "armed", "{state}");
    Ok(())
}

/// An isolated node that has joined the workload cluster.
struct IsolatedDesk {
    node: RealNode,
    name: String,
}

impl IsolatedDesk {
    async fn start(context: &TestContext, name: &str) -> anyhow::Result<Self> {
        let control_plane = context.clusters().control_plane();
        let binaries = NodeBinaries::from_process()?;
        let busybox = binaries.busybox.clone();
        let node = RealNode::isolated(control_plane, binaries).await?;
        node.import_archive(&archive("5spot-reclaim-agent")?).await?;
        let image = Image::new(IMAGE, &["/bin/sh"]).program("bin/busybox", &busybox)?;
        node.import(image.program(&format!("bin/{PROGRAM}"), "/bin/sleep".as_ref())?).await?;
        let name = context.cluster_scoped(name);
        node.join(control_plane, &name, &format!("remote-machine://{name}:22")).await?;
        context.note(format!("the kubelet of {name} is Ready at {}", node.address()));
        Ok(Self { node, name })
    }

    /// Opts in, and writes the configuration of the agent.
    async fn configure(&self, context: &TestContext) -> TestResult {
        let admin = context.workload().admin();
        let labels = json!({LABEL: "enabled", PLACE: context.namespace()});
        let nodes: Api<Node> = Api::all(admin.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        nodes.patch(&self.name, &PatchParams::default(), &patch).await?;
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config_map(&self.name)},
            "data": {CONFIG_KEY: format!("match_commands = [\"{PROGRAM}\"]\n")},
        });
        Applier::new(admin).apply(&object, SYSTEM_NAMESPACE).await?;
        Ok(())
    }

    /// Runs the program in a pod of a tenant.
    async fn run_in_a_pod(&self, context: &TestContext) -> TestResult {
        let pods: Api<Pod> = Api::namespaced(context.workload().admin(), context.namespace());
        let pod = json!({
            "metadata": {"name": PROGRAM},
            "spec": {
                "nodeName": self.name, "automountServiceAccountToken": false,
                "containers": [{
                    "name": "tenant", "image": IMAGE, "imagePullPolicy": "Never",
                    "command": [format!("/bin/{PROGRAM}"), "3600"],
                }],
            },
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let running =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        wait::until_present(&pods, PROGRAM, "to run", WITHIN, running).await?;
        Ok(())
    }

    async fn stop(self, context: &TestContext) -> TestResult {
        self.node.stop().await?;
        let admin = context.workload().admin();
        let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
        maps.delete(&config_map(&self.name), &DeleteParams::default()).await?;
        let nodes: Api<Node> = Api::all(admin);
        nodes.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// The DaemonSet of the overlay that polls, under a name of its own beside those of other tests.
struct Agents<'a> {
    context: &'a TestContext,
    name: String,
}

impl Agents<'_> {
    async fn install(&self) -> TestResult {
        let kubectl = Kubectl::new(self.context.clusters().control_plane(), Side::Workload);
        let documents = kubectl.build("deploy/node-agent-poll").await?;
        let shipped = documents.into_iter().find(|one| one["kind"] == "DaemonSet");
        let mut daemon_set = shipped.context("a DaemonSet")?;
        let labels = json!({"app": self.name});
        daemon_set["metadata"]["name"] = self.name.as_str().into();
        daemon_set["spec"]["selector"]["matchLabels"] = labels.clone();
        daemon_set["spec"]["template"]["metadata"]["labels"] = labels;
        let spec = &mut daemon_set["spec"]["template"]["spec"];
        merge(spec, json!({"nodeSelector": {PLACE: self.context.namespace()}}));
        merge(&mut spec["containers"][0], json!({"imagePullPolicy": "Never"}));
        ensure!(spec["hostNetwork"] == false && spec["hostPID"] == true, "{spec}");
        Applier::new(self.context.workload().admin()).apply(&daemon_set, SYSTEM_NAMESPACE).await?;
        Ok(())
    }

    async fn until_ready(&self, count: i32) -> TestResult {
        let sets: Api<DaemonSet> = Api::namespaced(self.context.workload().admin(), SYSTEM_NAMESPACE);
        let ready = |set: &DaemonSet| set.status.as_ref().is_some_and(|status| status.number_ready == count);
        let waited = wait::until_present(&sets, &self.name, "to be ready", WITHIN, ready).await;
        if waited.is_err() {
            self.context.note(self.log().await?);
        }
        waited?;
        Ok(())
    }

    async fn pods(&self) -> anyhow::Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.context.workload().admin(), SYSTEM_NAMESPACE);
        Ok(pods.list(&ListParams::default().labels(&format!("app={}", self.name))).await?.items)
    }

    async fn log(&self) -> anyhow::Result<String> {
        let selector = format!("app={}", self.name);
        let command = ["logs", "-n", SYSTEM_NAMESPACE, "-l", &selector, "--tail=50", "--prefix"];
        let output = self.context.kubectl(Side::Workload, &command).await?;
        Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    }

    /// The state of the agent on a node, which its readiness probe prints.
    async fn probe(&self, node: &str) -> anyhow::Result<Value> {
        let on_node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        let pod = self.pods().await?.into_iter().find(on_node).context("no agent on the node")?.name_any();
        let command = ["exec", "-n", SYSTEM_NAMESPACE, &pod, "--", "5spot-reclaim-agent", "probe"];
        let output = self.context.kubectl(Side::Workload, &command).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    async fn remove(&self) -> TestResult {
        let admin = self.context.workload().admin();
        let sets: Api<DaemonSet> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
        if sets.get_opt(&self.name).await?.is_some() {
            sets.delete(&self.name, &DeleteParams::default()).await?;
        }
        let pods: Api<Pod> = Api::namespaced(admin, SYSTEM_NAMESPACE);
        for pod in self.pods().await? {
            match pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await {
                // It may already be gone.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }
}
