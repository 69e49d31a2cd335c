//! An environment with all stand-ins, and functions to set it up and to query it.

use five_spot_apiserver::faults::{FaultPlan, FaultyService};
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock};
use five_spot_standins::{
    Contract, ErrorLog, StandInSettings, StandIns, Timing, cluster_api_crds, node_name, provider_crds,
};
use kube::Client;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A management cluster, a workload cluster (usually the same one), and all stand-ins, which end with it.
pub(crate) struct StandInFixture {
    pub(crate) api: ApiServer,
    pub(crate) workload: ApiServer,
    pub(crate) settings: StandInSettings,
    pub(crate) contract: Contract,
    /// The requests of the stand-ins.
    pub(crate) requests: FaultPlan,
    /// Their errors; none are expected unless a test says otherwise.
    pub(crate) errors: ErrorLog,
    pub(crate) may_have_errors: bool,
    actors: JoinHandle<()>,
}

impl Drop for StandInFixture {
    fn drop(&mut self) {
        self.actors.abort();
        if !self.may_have_errors && !std::thread::panicking() {
            let errors: Vec<String> = self.errors.latest().iter().map(ToString::to_string).collect();
            assert!(errors.is_empty(), "the stand-ins had errors: {errors:#?}");
        }
    }
}

impl StandInFixture {
    pub(crate) fn new() -> Self {
        Self::of(Contract::V1Beta2)
    }

    pub(crate) fn of(contract: Contract) -> Self {
        Self::made(contract, false, 0)
    }

    pub(crate) fn of_two_clusters() -> Self {
        Self::made(Contract::V1Beta2, true, 0)
    }

    /// An environment in which names and random faults depend on a seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::made(Contract::V1Beta2, false, seed)
    }

    fn made(contract: Contract, is_split: bool, seed: u64) -> Self {
        let clock = Clock::starting_at("2026-03-02T08:00:00Z".parse().expect("a timestamp"));
        let api = ApiServer::new(ApiServerConfig { seed, ..ApiServerConfig::new(clock.clone()) });
        for crd in cluster_api_crds(contract).into_iter().chain(provider_crds()) {
            api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
        }
        let workload =
            if is_split { ApiServer::new(ApiServerConfig::new(clock.clone())) } else { api.clone() };
        let settings = StandInSettings::new(Timing::default());
        let requests = FaultPlan::new(clock.clone(), seed);
        let client = |api: &ApiServer| faulty_client(api, &requests);
        let stand_ins =
            StandIns::new(client(&api), client(&workload), clock, settings.clone()).with_kubeconfig("way in");
        let errors = stand_ins.errors();
        let actors = tokio::spawn(stand_ins.run());
        Self { api, workload, settings, contract, requests, errors, may_have_errors: false, actors }
    }

    /// The parts of a machine, and the Machine.
    pub(crate) fn machine(&self, name: &str, annotations: &Value, spec: &Value) {
        let bootstrap = "bootstrap.cluster.x-k8s.io";
        let infrastructure = "infrastructure.cluster.x-k8s.io";
        self.api.create(
            &format!("/apis/{bootstrap}/v1beta2/namespaces/default/k0sworkerconfigs"),
            &json!({
                "apiVersion": format!("{bootstrap}/v1beta2"), "kind": "K0sWorkerConfig",
                "metadata": {"name": format!("{name}-bootstrap")}, "spec": {"version": "v1.36.4+k0s.0"},
            }),
        );
        self.api.create(
            &format!("/apis/{infrastructure}/v1beta2/namespaces/default/remotemachines"),
            &json!({
                "apiVersion": format!("{infrastructure}/v1beta2"), "kind": "RemoteMachine",
                "metadata": {"name": format!("{name}-infra")}, "spec": {"address": format!("10.0.0.{}", name.len())},
            }),
        );
        let reference = |group: &str, kind: &str, name: String| match self.contract {
            Contract::V1Beta1 => {
                json!({"apiVersion": format!("{group}/v1beta2"), "kind": kind, "name": name, "namespace": "default"})
            }
            Contract::V1Beta2 => json!({"apiGroup": group, "kind": kind, "name": name}),
        };
        let mut machine = json!({
            "apiVersion": format!("cluster.x-k8s.io/{}", self.contract.version()), "kind": "Machine",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "clusterName": "workload",
                "bootstrap": {"configRef": reference(bootstrap, "K0sWorkerConfig", format!("{name}-bootstrap"))},
                "infrastructureRef": reference(infrastructure, "RemoteMachine", format!("{name}-infra")),
            },
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            machine["spec"][field] = value.clone();
        }
        let version = self.contract.version();
        self.api.create(&format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/machines"), &machine);
    }

    /// A running Machine with its Node.
    pub(crate) async fn running(&self, name: &str, annotations: &Value, spec: &Value) -> String {
        self.machine(name, annotations, spec);
        self.until("Machine", name, |machine| machine["status"]["phase"] == "Running").await;
        let node = node_name("default", &format!("{name}-infra"));
        self.until("Node", &node, |node| condition(node, "Ready")["status"] == "True").await;
        node
    }

    pub(crate) fn pod(&self, node: &str, name: &str, metadata: &Value) {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "example.org/app:1"}]},
        });
        for (field, value) in metadata.as_object().into_iter().flatten() {
            pod["metadata"][field] = value.clone();
        }
        self.workload.create("/api/v1/namespaces/default/pods", &pod);
    }

    pub(crate) async fn running_pod(&self, node: &str, name: &str) {
        self.pod(node, name, &json!({}));
        self.until("Pod", name, |pod| pod["status"]["phase"] == "Running").await;
    }

    /// A budget that does not allow to disrupt `app`.
    pub(crate) fn budget(&self, app: &str) {
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": app}}});
        let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
        self.workload.create(path, &json!({"metadata": {"name": app}, "spec": spec}));
    }

    fn api(&self, kind: &str) -> kube::Api<DynamicObject> {
        let (group, version, plural) = match kind {
            "Node" => ("", "v1", "nodes"),
            "Pod" => ("", "v1", "pods"),
            "Secret" => ("", "v1", "secrets"),
            "Lease" => ("coordination.k8s.io", "v1", "leases"),
            "StubControlPlane" => ("controlplane.cluster.x-k8s.io", "v1beta2", "stubcontrolplanes"),
            "DaemonSet" => ("apps", "v1", "daemonsets"),
            "Deployment" => ("apps", "v1", "deployments"),
            "PodDisruptionBudget" => ("policy", "v1", "poddisruptionbudgets"),
            "Machine" => ("cluster.x-k8s.io", self.contract.version(), "machines"),
            "Cluster" => ("cluster.x-k8s.io", self.contract.version(), "clusters"),
            "K0sWorkerConfig" => ("bootstrap.cluster.x-k8s.io", "v1beta2", "k0sworkerconfigs"),
            "FancyMachine" => ("infrastructure.cluster.x-k8s.io", "v1", "fancymachines"),
            "RemoteMachine" => ("infrastructure.cluster.x-k8s.io", "v1beta2", "remotemachines"),
            other => panic!("unknown kind {other}"),
        };
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let is_workload =
            matches!(kind, "Node" | "Pod" | "Lease" | "DaemonSet" | "Deployment" | "PodDisruptionBudget");
        let side = if is_workload { &self.workload } else { &self.api };
        let client = side.client("default");
        match kind {
            "Node" => kube::Api::all_with(client, &resource),
            "Lease" => kube::Api::namespaced_with(client, "kube-node-lease", &resource),
            _ => kube::Api::namespaced_with(client, "default", &resource),
        }
    }

    /// An object; null if it does not exist.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        let found = self.api(kind).get_opt(name).await.expect("the API answers");
        found.map(|object| serde_json::to_value(object).expect("JSON")).unwrap_or_default()
    }

    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.api(kind).list(&kube::api::ListParams::default()).await.expect("the API answers");
        list.into_iter().map(|object| serde_json::to_value(object).expect("JSON")).collect()
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.api(kind).patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn patch_status(&self, kind: &str, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api(kind).patch_status(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    /// Waits, in virtual time, until an object satisfies a condition.
    pub(crate) async fn until(&self, kind: &str, name: &str, is_so: impl Fn(&Value) -> bool) {
        let mut last = Value::Null;
        for _ in 0..600 {
            last = self.get(kind, name).await;
            if is_so(&last) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let writes = self.writes();
        panic!(
            "{kind} {name} never was as it should be: {last:#}\n{:#?}",
            &writes[writes.len().saturating_sub(20)..]
        );
    }

    pub(crate) async fn until_gone(&self, kind: &str, name: &str) {
        self.until(kind, name, Value::is_null).await;
    }

    /// The write requests of the actors so far: verb and path, with the virtual time of each.
    pub(crate) fn writes(&self) -> Vec<String> {
        let seen = self.requests.seen();
        seen.iter().filter(|one| one.is_write()).map(|one| format!("{one:?}")).collect()
    }
}

/// A client whose requests have the faults of a plan.
pub(crate) fn faulty_client(api: &ApiServer, plan: &FaultPlan) -> Client {
    Client::new(FaultyService::new(api.service(), plan.clone()), "default")
}

/// A condition; null if there is none.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == kind).cloned().unwrap_or_default()
}
