//! The shipped DaemonSet of the agent on the real node.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::reclaim::{CONFIG_KEY, config_map};
use five_spot_scenarios::merge;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::install::{pod_of, until_in_force};
use crate::permissions::deploy;

/// The label by which a node opts in.
pub(super) const LABEL: &str = "5spot.finos.org/reclaim-agent";
/// The selector of the agents in the troubleshooting guide.
const SELECTOR: &str = "app=5spot-reclaim-agent";
const NAME: &str = "5spot-reclaim-agent";
/// A pod starts in two seconds, and takes longer on a busy machine.
pub(super) const WITHIN: Duration = Duration::from_secs(90);
/// The polling interval for a log.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// The agent of one node.
pub(super) struct AgentPod<'a> {
    context: &'a TestContext,
    node: String,
}

impl<'a> AgentPod<'a> {
    /// Applies the shipped manifests, with an overlay that sets the address of the API server, uses the imported image,
    /// and selects only this node.
    pub(super) async fn install(context: &'a TestContext, node: &str) -> anyhow::Result<Self> {
        crate::agent::install(context.workload()).await?;
        limit_pods(context).await?;
        let agent = Self { context, node: node.to_owned() };
        agent.change(json!({})).await?;
        Ok(agent)
    }

    /// Applies the DaemonSet again, with a merge patch of its pod's spec.
    pub(super) async fn change(&self, pod_spec: Value) -> anyhow::Result<()> {
        self.change_both(pod_spec, json!({}), &[]).await
    }

    /// The same with a merge patch of its container and variables in place of those of the same name.
    pub(super) async fn change_both(
        &self,
        pod_spec: Value,
        container: Value,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<()> {
        let mut daemon_set = manifests::read(&deploy("node-agent/daemonset.yaml"))?.remove(0);
        let (host, port) = address(self.context)?;
        let spec = &mut daemon_set["spec"]["template"]["spec"];
        merge(spec, json!({"nodeSelector": {"kubernetes.io/hostname": self.node}}));
        merge(spec, pod_spec);
        let first = &mut spec["containers"][0];
        merge(first, json!({"imagePullPolicy": "Never"}));
        merge(first, container);
        let env = first["env"].as_array_mut().context("variables")?;
        let overlay =
            [("KUBERNETES_SERVICE_HOST", host.as_str()), ("KUBERNETES_SERVICE_PORT", port.as_str())];
        for (name, value) in overlay.iter().chain(variables) {
            env.retain(|variable| variable["name"] != *name);
            env.push(json!({"name": name, "value": value}));
        }
        Applier::new(self.context.workload().admin()).apply(&daemon_set, SYSTEM_NAMESPACE).await?;
        Ok(())
    }

    /// Waits until the DaemonSet as it was last applied has a pod on the node that is ready.
    pub(super) async fn until_ready(&self) -> anyhow::Result<()> {
        let sets: Api<DaemonSet> = Api::namespaced(self.context.workload().admin(), SYSTEM_NAMESPACE);
        let ready = |set: &DaemonSet| {
            set.status.as_ref().is_some_and(|status| {
                status.observed_generation == set.metadata.generation
                    && status.updated_number_scheduled == Some(1)
                    && status.number_ready == 1
                    && status.current_number_scheduled == 1
            })
        };
        let waited = wait::until_present(&sets, NAME, "to have a ready pod", WITHIN, ready).await;
        match waited {
            Ok(_) => Ok(()),
            Err(error) => bail!("{error}\n---- the agent's log\n{}", self.log().await?),
        }
    }

    /// The names of the agent's pods on the node, those that are ending left out.
    pub(super) async fn pods(&self) -> anyhow::Result<Vec<String>> {
        let pods = self.all_pods().await?.into_iter();
        Ok(pods.filter(|pod| pod.metadata.deletion_timestamp.is_none()).map(|pod| pod.name_any()).collect())
    }

    async fn all_pods(&self) -> anyhow::Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.context.workload().admin(), SYSTEM_NAMESPACE);
        let selection =
            ListParams::default().labels(SELECTOR).fields(&format!("spec.nodeName={}", self.node));
        Ok(pods.list(&selection).await?.items)
    }

    /// The log by the command of the troubleshooting guide.
    pub(super) async fn log(&self) -> anyhow::Result<String> {
        let output = self
            .context
            .kubectl(Side::Workload, &["logs", "-n", SYSTEM_NAMESPACE, "-l", SELECTOR, "--tail=50"]);
        Ok(String::from_utf8_lossy(&output.await?.stdout).into_owned())
    }

    /// Waits until the log has a line with all of this in it, and returns it.
    pub(super) async fn until_logged(&self, parts: &[&str]) -> anyhow::Result<String> {
        let logged = async {
            loop {
                let log = self.log().await?;
                let line = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
                if let Some(line) = line {
                    return anyhow::Ok(line.to_owned());
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        match tokio::time::timeout(WITHIN, logged).await {
            Ok(line) => line,
            Err(_) => bail!("the agent never logged {parts:?}; its log:\n{}", self.log().await?),
        }
    }

    /// Waits until the container of a pod has exited with this code.
    pub(super) async fn until_exited(&self, code: i32) -> anyhow::Result<()> {
        let exited = async {
            loop {
                if self.all_pods().await?.iter().any(|pod| has_exited(pod, code)) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WITHIN, exited).await.with_context(|| format!("no exit code {code}"))?
    }

    /// The answer of the readiness probe, asked in the pod.
    pub(super) async fn probe(&self) -> anyhow::Result<Value> {
        let pod = self.pods().await?.pop().context("there is no pod of the agent")?;
        let command = ["exec", "-n", SYSTEM_NAMESPACE, &pod, "--", "5spot-reclaim-agent", "probe"];
        let output = self.context.kubectl(Side::Workload, &command).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Sets the opt-in label, or removes it.
    pub(super) async fn label(&self, is_set: bool) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.context.workload().admin());
        let value = if is_set { json!("enabled") } else { Value::Null };
        let patch = json!({"metadata": {"labels": {LABEL: value}}});
        nodes.patch(&self.node, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Writes the agent's configuration, as a person would.
    pub(super) async fn configure(&self, toml: &str) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config_map(&self.node)},
            "data": {CONFIG_KEY: toml},
        });
        Applier::new(self.context.workload().admin()).apply(&object, SYSTEM_NAMESPACE).await?;
        Ok(())
    }

    /// Ends the pods of the agent at once and forgets them, as pod garbage collection does a minute after their Node is
    /// gone.
    pub(super) async fn forget_pods(&self) -> anyhow::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.context.workload().admin(), SYSTEM_NAMESPACE);
        for pod in self.all_pods().await? {
            match pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await {
                // It may already be gone.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }

    /// Removes the DaemonSet and the configuration.
    pub(super) async fn uninstall(&self) -> anyhow::Result<()> {
        let admin = self.context.workload().admin();
        let sets: Api<DaemonSet> = Api::namespaced(admin.clone(), SYSTEM_NAMESPACE);
        sets.delete(NAME, &DeleteParams::default()).await?;
        let maps: Api<ConfigMap> = Api::namespaced(admin, SYSTEM_NAMESPACE);
        if maps.get_opt(&config_map(&self.node)).await?.is_some() {
            maps.delete(&config_map(&self.node), &DeleteParams::default()).await?;
        }
        self.forget_pods().await
    }
}

/// Applies the policy that limits the pods of the namespace, which the manifests of the agent contain, and waits until it is in
/// force: every pod of the agent in these tests passes it.
pub(super) async fn limit_pods(context: &TestContext) -> anyhow::Result<()> {
    let cluster = context.workload();
    let policy = manifests::read(&deploy("node-agent/pods.yaml"))?;
    Applier::new(cluster.admin()).apply_all(&policy, SYSTEM_NAMESPACE).await?;
    let agent = pod_of(&manifests::read(&deploy("node-agent/daemonset.yaml"))?, "DaemonSet")?;
    until_in_force(cluster, &agent, WITHIN).await
}

/// True if a container of the pod has exited with this code, now or before it was started again.
fn has_exited(pod: &Pod, code: i32) -> bool {
    let statuses = pod.status.iter().filter_map(|status| status.container_statuses.as_ref()).flatten();
    let mut states = statuses.flat_map(|status| [&status.state, &status.last_state]).flatten();
    states.any(|state| state.terminated.as_ref().is_some_and(|end| end.exit_code == code))
}

/// The address of the API server of the workload cluster.
fn address(context: &TestContext) -> anyhow::Result<(String, String)> {
    let server = context.workload().server();
    let authority = server.strip_prefix("https://").map(|authority| authority.trim_end_matches('/'));
    let (host, port) = authority.and_then(|authority| authority.rsplit_once(':')).context("an address")?;
    Ok((host.to_owned(), port.to_owned()))
}
