//! Namespaces that cannot be deleted: a pod on a node without a kubelet, and an API without a server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, DynamicObject, PostParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::program::{apply_fix, first_cause, why};

/// The time limit: the namespace controller retries with backoff, and waits for the grace periods of pods.
const WITHIN: Duration = Duration::from_secs(100);

pub(crate) fn tests() -> Vec<Test> {
    tests![
        a_pod_on_a_dead_node_holds_its_namespace,
        #[alone]
        an_unavailable_api_holds_every_namespace
    ]
}

async fn create<K>(api: &Api<K>, object: Value) -> anyhow::Result<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

fn has_condition(namespace: &Namespace, kind: &str) -> bool {
    let conditions = namespace.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == kind && condition.status == "True")
}

/// The namespace of the debugging notes, rebuilt as literally as possible: a deleted `StatefulSet` whose pod
/// stays, on a node without a kubelet, with a protected claim and volume.
async fn a_pod_on_a_dead_node_holds_its_namespace(context: Arc<TestContext>) -> TestResult {
    let client = context.workload().admin();
    let (name, node) = (context.cluster_scoped("stuck"), context.cluster_scoped("vmss000005"));
    let clusters = StuckNamespace { client: client.clone(), name: name.clone(), node: node.clone() };
    clusters.create().await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let pods: Api<Pod> = Api::namespaced(client.clone(), &name);
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &name);
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    sets.delete("sts", &orphan).await?;
    wait::until_gone(&sets, "sts", WITHIN).await?;
    namespaces.delete(&name, &DeleteParams::default()).await?;
    Api::<PersistentVolume>::all(client.clone()).delete(&name, &DeleteParams::default()).await?;
    let failed = |it: &Namespace| has_condition(it, "NamespaceDeletionContentFailure");
    wait::until_present(&namespaces, &name, "to report what remains", WITHIN, failed).await?;
    grace_period_is_over(&pods, "sts-0").await?;

    let answer = why(&context, Side::Workload, &[&format!("namespace/{name}")]).await?;
    assert_eq!(answer["state"], "stuck");
    assert_eq!(answer["object"], json!({"kind": "Namespace", "name": name}));
    assert_eq!(first_cause(&answer), "Pod sts-0");
    let chain: Vec<&str> = answer["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| step["object"]["kind"].as_str())
        .collect();
    assert_eq!(chain, ["Namespace", "Pod", "Node"]);
    let fix = &answer["causes"][0]["fix"][0];
    assert_eq!(fix["command"], format!("kubectl delete pod sts-0 -n {name} --grace-period=0 --force"));
    assert_eq!(fix["safe"], false);
    assert!(
        fix["warning"]
            .as_str()
            .is_some_and(|it| it.contains("may continue to run on the cluster indefinitely"))
    );

    // The volume leads to the same cause, through its claim, which has not been deleted yet: pods are deleted
    // first.
    let answer = why(&context, Side::Workload, &[&format!("pv/{name}")]).await?;
    assert_eq!((&answer["state"], first_cause(&answer)), (&json!("stuck"), "Pod sts-0".to_owned()));

    let answer = why(&context, Side::Workload, &["pod/sts-0", "-n", &name]).await?;
    apply_fix(&context, Side::Workload, &answer).await?;
    wait::until_gone(&pods, "sts-0", WITHIN).await?;
    wait::until_gone(&namespaces, &name, WITHIN).await?;
    Api::<Node>::all(client).delete(&node, &DeleteParams::default()).await?;
    Ok(())
}

/// Waits until the deletion timestamp of a pod, which includes its grace period, has passed. Until then it is
/// not stuck.
async fn grace_period_is_over(pods: &Api<Pod>, name: &str) -> anyhow::Result<()> {
    let is_deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let pod = wait::until_present(pods, name, "to be deleted", WITHIN, is_deleted).await?;
    let end = pod.metadata.deletion_timestamp.context("a deletion timestamp")?.0;
    // Times of the API server are in whole seconds.
    let rest = end.duration_since(jiff::Timestamp::now()) + jiff::SignedDuration::from_secs(1);
    tokio::time::sleep(Duration::try_from(rest).unwrap_or_default()).await;
    Ok(())
}

struct StuckNamespace {
    client: Client,
    name: String,
    node: String,
}

impl StuckNamespace {
    async fn create(&self) -> anyhow::Result<()> {
        let Self { client, name, node } = self;
        create(&Api::<Namespace>::all(client.clone()), json!({"metadata": {"name": name}})).await?;
        create(&Api::<Node>::all(client.clone()), json!({"metadata": {"name": node}})).await?;
        let spec = json!({"accessModes": ["ReadWriteMany"], "storageClassName": "manual"});
        let volume = json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": spec["accessModes"], "storageClassName": "manual", "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/nowhere"}, "claimRef": {"namespace": name, "name": "data"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
        });
        create(&Api::<PersistentVolume>::all(client.clone()), volume).await?;
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": spec["accessModes"], "storageClassName": "manual", "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), name);
        create(&claims, claim).await?;
        let bound = |claim: &PersistentVolumeClaim| {
            claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
        };
        wait::until_present(&claims, "data", "to be bound", WITHIN, bound).await?;
        let labels = json!({"app": "planet9"});
        let set = json!({
            "metadata": {"name": "sts"},
            "spec": {
                "replicas": 1, "serviceName": "sts", "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "nodeName": node, "terminationGracePeriodSeconds": 1, "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "planet9", "image": "neptunesoftware/planet9:v21.6.0"}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                }},
            },
        });
        create(&Api::<StatefulSet>::namespaced(client.clone(), name), set).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), name);
        wait::until_present(&pods, "sts-0", "to exist", WITHIN, |_| true).await?;
        Ok(())
    }
}

/// An aggregated API whose Service does not exist: no namespace can be deleted until it is gone.
async fn an_unavailable_api_holds_every_namespace(context: Arc<TestContext>) -> TestResult {
    let client = context.workload().admin();
    let name = context.cluster_scoped("held");
    let gvk = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let services: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.nobody.example.org"},
        "spec": {
            "group": "nobody.example.org", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": true,
        },
    });
    create(&services, service).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    create(&namespaces, json!({"metadata": {"name": name}})).await?;
    create(&Api::<ConfigMap>::namespaced(client, &name), json!({"metadata": {"name": "a"}})).await?;
    namespaces.delete(&name, &DeleteParams::default()).await?;
    let failed = |it: &Namespace| has_condition(it, "NamespaceDeletionDiscoveryFailure");
    wait::until_present(&namespaces, &name, "to report the failed discovery", WITHIN, failed).await?;
    let answer = why(&context, Side::Workload, &[&format!("ns/{name}")]).await?;
    assert_eq!(answer["state"], "stuck");
    assert_eq!(first_cause(&answer), "APIService v1beta1.nobody.example.org");
    assert_eq!(answer["causes"][0]["fix"][0]["safe"], false);
    apply_fix(&context, Side::Workload, &answer).await?;
    wait::until_gone(&namespaces, &name, WITHIN).await?;
    Ok(())
}
