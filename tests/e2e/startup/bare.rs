//! An empty API server, and the objects that tests create there.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_standins::{Contract, cluster_api_crds};
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::binaries::Binaries;
use five_spot_testenv::control_plane::ControlPlane;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests::{self, Applier};
use five_spot_testenv::run_directory;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};

/// The time limit: long enough for a CRD on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_mins(1);

/// The Role for the Leases of the instances.
const INSTANCES: &str = "5spot-instances";

/// The API server.
pub(crate) struct Bare {
    control_plane: ControlPlane,
}

impl Bare {
    pub(crate) async fn start(name: &str) -> anyhow::Result<Self> {
        let name = format!("test-{}-{name}", std::process::id());
        let binaries = Binaries::from_process()?;
        let control_plane = ControlPlane::start_bare(&binaries, &run_directory::base(), &name).await?;
        let bare = Self { control_plane };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
        bare.apply(&namespace).await?;
        Ok(bare)
    }

    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    pub(crate) fn admin(&self) -> Client {
        self.control_plane.management().admin()
    }

    pub(crate) fn directory(&self) -> &Path {
        self.control_plane.directory()
    }

    pub(crate) async fn stop(&self) -> anyhow::Result<()> {
        Ok(self.control_plane.stop().await?)
    }

    pub(crate) async fn apply(&self, document: &Value) -> anyhow::Result<()> {
        Applier::new(self.admin()).apply(document, "default").await?;
        Ok(())
    }

    /// The CRDs of Machines, Clusters and drain rules, without controllers.
    pub(crate) async fn install_cluster_api(&self) -> anyhow::Result<()> {
        Ok(manifests::apply_crds(&self.admin(), &cluster_api_crds(Contract::V1Beta2), SERVED_WITHIN).await?)
    }

    /// Applies a definition of `ScheduledMachine`, replacing the existing one.
    pub(crate) async fn define(&self, definition: &Value) -> anyhow::Result<()> {
        Ok(manifests::apply_crds(&self.admin(), std::slice::from_ref(definition), SERVED_WITHIN).await?)
    }

    /// Deletes the CRD of `ScheduledMachine`, and with it every object.
    pub(crate) async fn undefine(&self) -> anyhow::Result<()> {
        let crds: Api<CustomResourceDefinition> = Api::all(self.admin());
        let name = shipped_definition()["metadata"]["name"].as_str().context("a name")?.to_owned();
        crds.delete(&name, &DeleteParams::default()).await?;
        Ok(five_spot_testenv::wait::until_gone(&crds, &name, SERVED_WITHIN).await?)
    }

    /// An account with these rules in all namespaces.
    pub(crate) async fn account(&self, name: &str, rules: &Value) -> anyhow::Result<ServiceAccountIdentity> {
        let group = "rbac.authorization.k8s.io";
        let documents = [
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            }),
            role(name, rules),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}],
            }),
        ];
        let cluster = self.control_plane.management();
        Ok(ServiceAccountIdentity::from_manifests(cluster, &documents, SYSTEM_NAMESPACE, name).await?)
    }

    /// The requests of an identity so far.
    pub(crate) fn asked(&self, by: &ServiceAccountIdentity) -> anyhow::Result<Vec<AuditRecord>> {
        let records =
            self.control_plane.management().audit_log().read(&AuditQuery::all().user(&by.user()))?;
        Ok(records.into_iter().filter(|record| record.stage == "ResponseComplete").collect())
    }
}

/// A role that grants rules in all namespaces.
pub(crate) fn role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": rules,
    })
}

/// The rules of the controller's roles, as shipped: for all namespaces, and for the Leases of its instances.
pub(crate) fn shipped_rules() -> anyhow::Result<Vec<Value>> {
    let mut rules = rules_without_leases()?;
    rules.extend(rules_of(&controller_roles()?, "Role", INSTANCES)?);
    Ok(rules)
}

/// The rules of the controller's role for all namespaces, as shipped.
pub(crate) fn rules_without_leases() -> anyhow::Result<Vec<Value>> {
    rules_of(&controller_roles()?, "ClusterRole", "5spot-controller")
}

/// The rules of the role for the Leases that claim physical machines, as shipped. They cover those of the instances.
pub(crate) fn lease_rules() -> anyhow::Result<Vec<Value>> {
    let documents = manifests::read(&crate::permissions::deploy("rbac/machine-claims.yaml"))?;
    rules_of(&documents, "Role", "5spot-claims")
}

fn rules_of(documents: &[Value], kind: &str, name: &str) -> anyhow::Result<Vec<Value>> {
    let is_it = |role: &&Value| role["kind"] == kind && role["metadata"]["name"] == name;
    let role = documents.iter().find(is_it).with_context(|| format!("no {kind} {name}"))?;
    role["rules"].as_array().cloned().context("rules")
}

/// The Role for the Leases of the instances, and its binding, as shipped.
pub(crate) fn instances_role() -> anyhow::Result<Vec<Value>> {
    let mut documents = controller_roles()?;
    documents.retain(|document| document["metadata"]["name"] == INSTANCES);
    Ok(documents)
}

fn controller_roles() -> anyhow::Result<Vec<Value>> {
    Ok(manifests::read(&crate::permissions::deploy("rbac/controller.yaml"))?)
}

/// The definition of this version.
pub(crate) fn shipped_definition() -> Value {
    serde_json::to_value(five_spot_api::crd()).unwrap_or_default()
}

/// A `ScheduledMachine` in the namespace `default` that wants its machine at any time.
pub(crate) fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]},
            "clusterName": "edge",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {}},
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine", "spec": {},
            },
        },
    })
}
