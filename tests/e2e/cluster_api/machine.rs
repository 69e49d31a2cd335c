//! A Machine with the same objects as the controller creates, but created by the test: bootstrap and
//! infrastructure objects with plain owner references, then the Machine with a controller reference.

use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::kinds::{K0S_WORKER_CONFIG, KUBEADM_CONFIG, MACHINE, REMOTE_MACHINE, ThirdPartyKind};
use five_spot_testenv::provider::node_name;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{DynamicObject, ObjectMeta, PostParams};
use serde_json::{Value, json};

/// The time limit: provisioning takes a second, plus rechecks of Cluster API after 30 s on a busy machine.
pub(crate) const RUNNING_WITHIN: Duration = Duration::from_secs(100);
/// The name of the Cluster in every test's namespace.
pub(crate) const CLUSTER_NAME: &str = "workload";

/// The version of Cluster API's kinds that a Machine is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contract {
    V1Beta1,
    V1Beta2,
}

/// The plan of a Machine, whose fields the tests vary.
#[derive(Debug, Clone)]
pub(crate) struct MachinePlan {
    pub(crate) name: String,
    pub(crate) contract: Contract,
    pub(crate) bootstrap: ThirdPartyKind,
    pub(crate) bootstrap_spec: Value,
    pub(crate) annotations: Value,
    pub(crate) drain_timeout_seconds: Option<u32>,
    /// The plain reference to the Cluster on bootstrap and infrastructure objects, which the controller
    /// always sets.
    pub(crate) owned_by_cluster: bool,
    /// The controller reference of the Machine to its owner, which the controller always sets.
    pub(crate) machine_has_controller: bool,
    /// A controller reference on the infrastructure object, which the controller never sets.
    pub(crate) infrastructure_has_controller: bool,
}

impl MachinePlan {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            contract: Contract::V1Beta2,
            bootstrap: K0S_WORKER_CONFIG,
            bootstrap_spec: json!({ "version": "v1.36.4+k0s.0" }),
            annotations: json!({}),
            drain_timeout_seconds: None,
            owned_by_cluster: true,
            machine_has_controller: true,
            infrastructure_has_controller: false,
        }
    }

    pub(crate) fn kubeadm(name: &str) -> Self {
        Self { bootstrap: KUBEADM_CONFIG, bootstrap_spec: kubeadm_spec(), ..Self::new(name) }
    }
}

/// A created Machine.
pub(crate) struct MadeMachine<'a> {
    pub(crate) context: &'a TestContext,
    pub(crate) plan: MachinePlan,
    /// The owner of the Machine: a ConfigMap, since Cluster API and the garbage collector accept any owner.
    pub(crate) owner: ConfigMap,
}

/// The Cluster that most tests need.
pub(crate) async fn cluster(context: &TestContext) -> anyhow::Result<DynamicObject> {
    Ok(context.capi_cluster(CLUSTER_NAME, ControlPlaneOwner::External).await?)
}

/// Creates everything that a plan contains, in the order that needs no retries.
pub(crate) async fn make<'a>(
    context: &'a TestContext,
    cluster: &DynamicObject,
    plan: MachinePlan,
) -> anyhow::Result<MadeMachine<'a>> {
    let client = context.management().admin();
    let owners: Api<ConfigMap> = Api::namespaced(client.clone(), context.namespace());
    let metadata = ObjectMeta { name: Some(format!("{}-owner", plan.name)), ..ObjectMeta::default() };
    let owner = ConfigMap { metadata, ..ConfigMap::default() };
    let owner = owners.create(&PostParams::default(), &owner).await.context("owner")?;

    let mut plain_owners = vec![reference(&owner, "v1", "ConfigMap", false)];
    if plan.owned_by_cluster {
        plain_owners.push(reference(cluster, &cluster_api_version(), "Cluster", false));
    }
    let labels = json!({ "cluster.x-k8s.io/cluster-name": CLUSTER_NAME });
    let bootstrap = json!({
        "apiVersion": plan.bootstrap.api_version(), "kind": plan.bootstrap.kind,
        "metadata": { "name": format!("{}-bootstrap", plan.name), "labels": labels, "ownerReferences": plain_owners },
        "spec": plan.bootstrap_spec,
    });
    create(context, plan.bootstrap, bootstrap).await?;
    let controller = reference(&owner, "v1", "ConfigMap", true);
    let owners = if plan.infrastructure_has_controller { vec![controller.clone()] } else { plain_owners };
    let infrastructure = json!({
        "apiVersion": REMOTE_MACHINE.api_version(), "kind": REMOTE_MACHINE.kind,
        "metadata": { "name": format!("{}-infra", plan.name), "labels": labels, "ownerReferences": owners },
        "spec": { "address": context.address(), "port": 22, "user": "root" },
    });
    create(context, REMOTE_MACHINE, infrastructure).await?;
    let kind = MACHINE.at(match plan.contract {
        Contract::V1Beta1 => "v1beta1",
        Contract::V1Beta2 => "v1beta2",
    });
    let owners = if plan.machine_has_controller { vec![controller] } else { vec![] };
    let machine = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {
            "name": plan.name, "labels": labels, "annotations": plan.annotations, "ownerReferences": owners,
        },
        "spec": machine_spec(context, &plan),
    });
    create(context, kind, machine).await?;
    Ok(MadeMachine { context, plan, owner })
}

fn machine_spec(context: &TestContext, plan: &MachinePlan) -> Value {
    let reference = |kind: ThirdPartyKind, suffix: &str| {
        let name = format!("{}-{suffix}", plan.name);
        match plan.contract {
            Contract::V1Beta2 => json!({ "apiGroup": kind.group, "kind": kind.kind, "name": name }),
            Contract::V1Beta1 => json!({
                "apiVersion": kind.api_version(), "kind": kind.kind, "name": name, "namespace": context.namespace(),
            }),
        }
    };
    let mut spec = json!({
        "clusterName": CLUSTER_NAME,
        "bootstrap": { "configRef": reference(plan.bootstrap, "bootstrap") },
        "infrastructureRef": reference(REMOTE_MACHINE, "infra"),
    });
    if let Some(seconds) = plan.drain_timeout_seconds {
        match plan.contract {
            Contract::V1Beta1 => spec["nodeDrainTimeout"] = json!(format!("{seconds}s")),
            Contract::V1Beta2 => spec["deletion"] = json!({ "nodeDrainTimeoutSeconds": seconds }),
        }
    }
    spec
}

/// A Machine with its Node, ready for the test.
pub(crate) async fn running<'a>(
    context: &'a TestContext,
    cluster: &DynamicObject,
    plan: MachinePlan,
) -> anyhow::Result<MadeMachine<'a>> {
    let made = make(context, cluster, plan).await?;
    made.until_running().await?;
    Ok(made)
}

impl MadeMachine<'_> {
    pub(crate) fn machines(&self) -> Api<DynamicObject> {
        MACHINE.in_namespace(&self.context.management().admin(), self.context.namespace())
    }

    pub(crate) fn bootstraps(&self) -> Api<DynamicObject> {
        self.plan.bootstrap.in_namespace(&self.context.management().admin(), self.context.namespace())
    }

    pub(crate) fn infrastructures(&self) -> Api<DynamicObject> {
        REMOTE_MACHINE.in_namespace(&self.context.management().admin(), self.context.namespace())
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.context.workload().admin())
    }

    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    pub(crate) fn bootstrap(&self) -> String {
        format!("{}-bootstrap", self.plan.name)
    }

    pub(crate) fn infrastructure(&self) -> String {
        format!("{}-infra", self.plan.name)
    }

    pub(crate) fn node(&self) -> String {
        node_name(self.context.namespace(), &self.infrastructure())
    }

    /// Waits until Cluster API reports Running and the Machine's Node is Ready.
    pub(crate) async fn until_running(&self) -> anyhow::Result<DynamicObject> {
        let is_running = |machine: &DynamicObject| {
            machine.data["status"]["phase"] == "Running" && condition(machine, "NodeReady").0 == "True"
        };
        Ok(wait::until_present(&self.machines(), self.name(), "to be Running", RUNNING_WITHIN, is_running)
            .await?)
    }

    pub(crate) async fn until_gone(&self, within: Duration) -> anyhow::Result<()> {
        Ok(wait::until_gone(&self.machines(), self.name(), within).await?)
    }

    pub(crate) async fn delete(&self) -> anyhow::Result<()> {
        self.machines().delete(self.name(), &kube::api::DeleteParams::default()).await?;
        Ok(())
    }
}

/// Status and reason of a `metav1.Condition`; empty if there is none.
pub(crate) fn condition(object: &DynamicObject, kind: &str) -> (String, String) {
    let conditions = object.data["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    let text = |name: &str| found.and_then(|it| it[name].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// The message of a condition.
pub(crate) fn condition_message(object: &DynamicObject, kind: &str) -> String {
    let conditions = object.data["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
}

/// Creates an object, and sets its kind and version.
pub(crate) async fn create(
    context: &TestContext,
    kind: ThirdPartyKind,
    object: Value,
) -> anyhow::Result<DynamicObject> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let object: DynamicObject = serde_json::from_value(object)?;
    kind.in_namespace(&context.management().admin(), context.namespace())
        .create(&PostParams::default(), &object)
        .await
        .with_context(|| format!("{} {name}", kind.kind))
}

fn reference(object: &impl kube::ResourceExt, api_version: &str, kind: &str, controller: bool) -> Value {
    let mut reference =
        json!({ "apiVersion": api_version, "kind": kind, "name": object.name_any(), "uid": object.uid() });
    if controller {
        reference["controller"] = json!(true);
        reference["blockOwnerDeletion"] = json!(true);
    }
    reference
}

/// A minimal object for the real schema, which refuses an empty one.
fn kubeadm_spec() -> Value {
    let arguments = json!([{ "name": "v", "value": "2" }]);
    json!({ "joinConfiguration": { "nodeRegistration": { "kubeletExtraArgs": arguments } } })
}

fn cluster_api_version() -> String {
    five_spot_testenv::kinds::CLUSTER.api_version()
}
