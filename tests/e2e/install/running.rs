//! The shipped images under real kubelets: the controller as the pods of its Deployment, the agent as the pod of its
//! `DaemonSet`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_scenarios::merge;
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::provider::StepBehaviour;
use five_spot_testenv::test_clusters::{TestClusters, TestContext};
use five_spot_testenv::{tests, wait};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::kubectl::Kubectl;
use super::lease_watch::LeaseWatch;
use super::pods::ManagementNode;
use super::refusals::until_event;
use crate::node::{Desk, OwnersProgram, processes_called};
use crate::scenarios::kubeconfig_reader;
use crate::startup::machine;

pub(crate) fn tests() -> Vec<Test> {
    tests![the_images_run_as_pods].into_iter().map(|test| test.within(Duration::from_mins(12))).collect()
}

/// Long enough for a machine that is busy with a build.
const WITHIN: Duration = Duration::from_mins(3);
const DEPLOYMENT: &str = "5spot-controller";

async fn the_images_run_as_pods(context: Arc<TestContext>) -> TestResult {
    let clusters = TestClusters::start_another("install").await?;
    let node = ManagementNode::start(&clusters).await?;
    let test = LayoutTest {
        kubectl: Kubectl::new(clusters.control_plane(), Side::Management),
        lent: clusters.test_context("lent").await?,
        desk: clusters.test_context("desk").await?,
        node,
        clusters,
    };
    let result = test.perform(&context).await;
    if result.is_err() {
        test.show_pods().await;
        eprintln!("{}\n{}\n{}", test.lent.timeline(), test.desk.timeline(), test.node.logs());
    }
    let LayoutTest { node, clusters, .. } = test;
    node.stop().await?;
    clusters.stop().await?;
    result
}

struct LayoutTest {
    kubectl: Kubectl,
    /// Machines that kwok has nodes for.
    lent: TestContext,
    /// The machine with the real node.
    desk: TestContext,
    node: ManagementNode,
    clusters: Arc<TestClusters>,
}

impl LayoutTest {
    async fn perform(&self, outside: &TestContext) -> TestResult {
        self.install().await?;
        let leases = LeaseWatch::start(self.clusters.control_plane().management());
        Self::expect_restricted_processes()?;
        self.lend(&self.lent, "first", json!({})).await?;
        // Opens at once and closes at the end of the next minute.
        let closes = self.lend(&self.lent, "shift", short_window()).await?;
        self.owner_comes_back(outside).await?;
        self.leader_is_killed(&leases).await?;
        self.rollout(&leases).await?;
        self.config_map_is_missing().await?;
        let gone = |object: &ScheduledMachine| phase(object) == Some(Phase::Inactive);
        wait::until_present(&self.machines(&self.lent), &closes, "to be closed", WITHIN, gone).await?;
        println!("the window of lent/{closes} has opened and closed");
        Ok(())
    }

    /// Both clusters as the documentation says: the overlay of each, and a kubeconfig for the controller.
    async fn install(&self) -> TestResult {
        let control_plane = self.clusters.control_plane();
        let mut documents = self.kubectl.build("deploy/ha").await?;
        let deployment =
            documents.iter_mut().find(|one| one["kind"] == "Deployment").context("a Deployment")?;
        self.node.adapt(deployment)?;
        // Definitions and the namespace come first in what kustomize prints.
        let mut applier = Applier::new(control_plane.management().admin());
        applier.apply_all(&documents, SYSTEM_NAMESPACE).await?;

        let workload = control_plane.workload();
        let kubectl = Kubectl::new(control_plane, Side::Workload);
        let mut documents = kubectl.build("deploy/workload-cluster").await?;
        let agent = documents.iter_mut().find(|one| one["kind"] == "DaemonSet").context("a DaemonSet")?;
        adapt_agent(agent, workload.server())?;
        let account = DEPLOYMENT;
        let identity =
            ServiceAccountIdentity::from_manifests(workload, &documents, SYSTEM_NAMESPACE, account).await?;
        for context in [&self.lent, &self.desk] {
            context.capi_cluster("edge", ControlPlaneOwner::External).await?;
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-nodes"},
                "stringData": {"value": identity.kubeconfig(Some(&self.node.workload_server()))},
            });
            applier.apply_all(&[secret, kubeconfig_reader()], context.namespace()).await?;
        }
        self.until_rolled_out().await
    }

    async fn until_rolled_out(&self) -> TestResult {
        let deployments: Api<Deployment> =
            Api::namespaced(self.clusters.control_plane().management().admin(), SYSTEM_NAMESPACE);
        let done = |deployment: &Deployment| {
            deployment.status.as_ref().is_some_and(|status| {
                status.observed_generation == deployment.metadata.generation
                    && status.updated_replicas == Some(2)
                    && status.available_replicas == Some(2)
                    && status.replicas == Some(2)
            })
        };
        wait::until_present(&deployments, DEPLOYMENT, "to have two pods", WITHIN, done).await?;
        Ok(())
    }

    /// The pods run as the user of the image, without capabilities and without new privileges.
    fn expect_restricted_processes() -> TestResult {
        let ours = controllers();
        ensure!(ours.len() == 2, "two pods: {ours:?}");
        for (process, _) in ours {
            let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
            let field = |name: &str| {
                let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                value.split_whitespace().next().unwrap_or_default().to_owned()
            };
            ensure!(field("Uid:") == "65532" && field("Gid:") == "65532", "{status}");
            ensure!(
                field("CapEff:") == "0000000000000000" && field("CapBnd:") == "0000000000000000",
                "{status}"
            );
            ensure!(field("NoNewPrivs:") == "1" && field("Seccomp:") == "2", "{status}");
        }
        Ok(())
    }

    fn machines(&self, context: &TestContext) -> Api<ScheduledMachine> {
        Api::namespaced(self.clusters.control_plane().management().admin(), context.namespace())
    }

    /// Creates a machine that is wanted now, and waits until it has its node.
    async fn lend(&self, context: &TestContext, name: &str, change: Value) -> anyhow::Result<String> {
        self.order(context, name, change).await?;
        let is_lent = |object: &ScheduledMachine| {
            let status = object.status.as_ref();
            phase(object) == Some(Phase::Active) && status.is_some_and(|status| status.node_ref.is_some())
        };
        wait::until_present(&self.machines(context), name, "to have its node", WITHIN, is_lent).await?;
        Ok(name.to_owned())
    }

    async fn order(&self, context: &TestContext, name: &str, change: Value) -> anyhow::Result<Value> {
        let mut object = machine(name);
        object["metadata"]["namespace"] = context.namespace().into();
        object["spec"]["kubeconfigSecretRef"] = json!({"name": "edge-nodes"});
        object["spec"]["infrastructureSpec"]["spec"] = json!({"address": context.address(), "port": 22});
        merge(&mut object["spec"], change);
        let admin = self.clusters.control_plane().management().admin();
        Applier::new(admin).apply(&object, context.namespace()).await?;
        Ok(object)
    }

    /// A program of the owner makes the agent's pod request a reclaim, and the controller's pod returns the
    /// machine.
    async fn owner_comes_back(&self, outside: &TestContext) -> TestResult {
        let desk = Desk::take(outside).await?;
        self.desk.provider(|behaviour| behaviour.join = StepBehaviour::Hangs);
        let object = self.order(&self.desk, "desk", json!({"killIfCommands": ["java"]})).await?;
        let address =
            object["spec"]["infrastructureSpec"]["spec"]["address"].as_str().context("an address")?;
        let provider_id = format!("remote-machine://{address}:22");
        let name = self.desk.cluster_scoped("desk");
        let control_plane = self.clusters.control_plane();
        desk.machine()?.join(control_plane, &name, &provider_id).await?;
        let is_ready = |object: &ScheduledMachine| {
            object.status.as_ref().is_some_and(|status| {
                status.conditions.iter().any(|one| one.type_ == "MachineReady" && one.status == "True")
            })
        };
        wait::until_present(&self.machines(&self.desk), "desk", "to be ready", WITHIN, is_ready).await?;
        let agents: Api<k8s_openapi::api::apps::v1::DaemonSet> =
            Api::namespaced(control_plane.workload().admin(), SYSTEM_NAMESPACE);
        let has_agent = |set: &k8s_openapi::api::apps::v1::DaemonSet| {
            set.status.as_ref().is_some_and(|status| status.number_ready == 1)
        };
        wait::until_present(&agents, "5spot-reclaim-agent", "to have a ready pod", WITHIN, has_agent).await?;
        let started = Instant::now();
        let program = OwnersProgram::start(outside, "java")?;
        let returned = |object: &ScheduledMachine| phase(object) == Some(Phase::Disabled);
        wait::until_present(&self.machines(&self.desk), "desk", "to be returned", WITHIN, returned).await?;
        println!("java: the machine was returned after {:.2} s", started.elapsed().as_secs_f64());
        drop(program);
        desk.leave().await
    }

    /// The process of the leader is killed. The other pod takes over, and lends another machine.
    async fn leader_is_killed(&self, leases: &LeaseWatch) -> TestResult {
        let leader = leases.holder().context("a leader")?;
        let pods = self.kubectl.json(&format!("get pod -n {SYSTEM_NAMESPACE} {leader} -o json")).await?;
        let uid = pods["metadata"]["uid"].as_str().context("a uid")?.to_owned();
        let process = controllers().into_iter().find(|(_, cgroup)| cgroup.contains(&uid));
        let (process, _) = process.context("the leader has a process")?;
        let killed = Instant::now();
        let status = std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status()?;
        ensure!(status.success(), "kill: {status}");
        self.lend(&self.lent, "after-kill", json!({})).await?;
        println!("leader killed: another machine was lent after {:.2} s", killed.elapsed().as_secs_f64());
        ensure!(leases.holder().is_some_and(|holder| holder != leader), "the other pod leads");
        self.until_rolled_out().await
    }

    /// Every pod is replaced. The Lease is handed over each time and never expires.
    async fn rollout(&self, leases: &LeaseWatch) -> TestResult {
        let before = leases.gaps().len();
        let begun = Instant::now();
        let deployments: Api<Deployment> =
            Api::namespaced(self.clusters.control_plane().management().admin(), SYSTEM_NAMESPACE);
        let annotation = json!({"5spot.finos.org/restarted-by": "test"});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotation}}}});
        deployments.patch(DEPLOYMENT, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.until_rolled_out().await?;
        // The last pod of the old ones may be about to end.
        let replaced = tokio::time::timeout(WITHIN, leases.until_more_than(before)).await;
        replaced.context("the leader was not replaced")?;
        let gaps = leases.gaps().split_off(before);
        println!("rollout: {:.1} s, gaps between leaders: {gaps:?}", begun.elapsed().as_secs_f64());
        ensure!(gaps.iter().all(Option::is_some), "every leader has released the Lease: {gaps:?}");
        self.lend(&self.lent, "after-rollout", json!({})).await?;
        Ok(())
    }

    /// A pod without its `ConfigMap` does not start, its events name the `ConfigMap`, and the other pod keeps lending machines.
    async fn config_map_is_missing(&self) -> TestResult {
        let pods = format!("-n {SYSTEM_NAMESPACE} -l app={DEPLOYMENT}");
        let config_map = format!("configmap -n {SYSTEM_NAMESPACE} 5spot-config");
        let mut kept = self.kubectl.json(&format!("get {config_map} -o json")).await?;
        kept["metadata"] = json!({"name": "5spot-config"});
        self.kubectl.ok(&format!("delete {config_map}")).await?;
        let listed = self.kubectl.json(&format!("get pods {pods} -o json")).await?;
        let mut listed = listed["items"].as_array().into_iter().flatten();
        let running = listed.find(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let running = running.and_then(|pod| pod["metadata"]["name"].as_str()).context("a running pod")?;
        self.kubectl.ok(&format!("delete pod -n {SYSTEM_NAMESPACE} {running}")).await?;
        until_event(&self.kubectl, "Pod", "configmap \"5spot-config\" not found").await?;
        self.lend(&self.lent, "without-config-map", json!({})).await?;
        let (shown, _) = self.kubectl.ok(&format!("get pods {pods}")).await?;
        ensure!(shown.contains("CreateContainerConfigError"), "{shown}");
        Applier::new(self.clusters.control_plane().management().admin())
            .apply(&kept, SYSTEM_NAMESPACE)
            .await?;
        // The kubelet tries again after a while. A new pod starts at once.
        self.kubectl.ok(&format!("delete pods {pods} --field-selector=status.phase=Pending")).await?;
        self.until_rolled_out().await
    }

    /// Prints what a person would check.
    async fn show_pods(&self) {
        for line in [
            "get pods -A -o wide",
            "describe pods -n 5spot-system",
            "logs -n 5spot-system -l app=5spot-controller --tail=40 --prefix",
            "get scheduledmachines -A -o yaml",
        ] {
            if let Ok(output) = self.kubectl.run(line).await {
                eprintln!("---- kubectl {line}\n{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
}

/// The agent uses the network of its host, and finds the API server there.
fn adapt_agent(daemon_set: &mut Value, server: &str) -> anyhow::Result<()> {
    let authority = server.trim_start_matches("https://");
    let (host, port) = authority.rsplit_once(':').context("an address")?;
    let container = &mut daemon_set["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_array_mut().context("variables")?;
    for (name, value) in [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port)] {
        variables.push(json!({"name": name, "value": value}));
    }
    Ok(())
}

/// The processes of the controller that are in pods, with their cgroups.
fn controllers() -> Vec<(u32, String)> {
    let all = processes_called("5spot-controlle").into_iter();
    all.filter(|(_, cgroup)| cgroup.contains("kubepods")).collect()
}

fn phase(object: &ScheduledMachine) -> Option<Phase> {
    object.status.as_ref()?.phase
}

/// A schedule that is open now and closes in one to two minutes.
fn short_window() -> Value {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let text = |at: &jiff::Zoned| at.strftime("%a %H:%M").to_string().to_lowercase();
    let ends = now.saturating_add(jiff::Span::new().minutes(2));
    json!({"schedule": {"daysOfWeek": null, "hoursOfDay": null, "windows": [{"from": text(&now), "to": text(&ends)}]}})
}
