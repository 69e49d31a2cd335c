//! The contract between Cluster API and providers: labels on CRDs, versions without conversion, and no
//! requests while nothing changes.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::audit::AuditQuery;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::kinds::{K0S_WORKER_CONFIG, MACHINE, ThirdPartyKind};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::{manifests, wait, wire};
use http::Method;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

use super::machine::{CLUSTER_NAME, MachinePlan, RUNNING_WITHIN, cluster, condition, create, running};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        provider_crd_without_contract_label_is_an_internal_error,
        older_version_of_a_machine_is_served_with_a_warning,
        renamed_fields_of_an_older_version_vanish,
        idle_machine_costs_no_request,
    ]
}

const UNLABELLED: ThirdPartyKind = ThirdPartyKind {
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    kind: "UnlabelledMachine",
    plural: "unlabelledmachines",
};

async fn provider_crd_without_contract_label_is_an_internal_error(context: Arc<TestContext>) -> TestResult {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", UNLABELLED.plural, UNLABELLED.group) },
        "spec": {
            "group": UNLABELLED.group, "scope": "Namespaced",
            "names": { "kind": UNLABELLED.kind, "plural": UNLABELLED.plural },
            "versions": [{
                "name": UNLABELLED.version, "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let client = context.management().admin();
    manifests::apply_crds(&client, &[crd], Duration::from_secs(30)).await?;
    cluster(&context).await?;
    let object = |kind: ThirdPartyKind, name: &str, spec| json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "name": name }, "spec": spec });
    create(&context, K0S_WORKER_CONFIG, object(K0S_WORKER_CONFIG, "m-bootstrap", json!({}))).await?;
    create(&context, UNLABELLED, object(UNLABELLED, "m-infra", json!({}))).await?;
    let reference =
        |kind: ThirdPartyKind, name: &str| json!({ "apiGroup": kind.group, "kind": kind.kind, "name": name });
    let spec = json!({
        "clusterName": CLUSTER_NAME,
        "bootstrap": { "configRef": reference(K0S_WORKER_CONFIG, "m-bootstrap") },
        "infrastructureRef": reference(UNLABELLED, "m-infra"),
    });
    create(&context, MACHINE, object(MACHINE, "m", spec)).await?;
    let internal_error = |machine: &DynamicObject| {
        condition(machine, "InfrastructureReady") == ("Unknown".into(), "InternalError".into())
    };
    let machines = MACHINE.in_namespace(&client, context.namespace());
    wait::until_present(&machines, "m", "to report an internal error", RUNNING_WITHIN, internal_error)
        .await?;
    Ok(())
}

/// Every response for v1beta1 of Cluster API has a deprecation warning; responses for v1beta2 have none.
async fn older_version_of_a_machine_is_served_with_a_warning(context: Arc<TestContext>) -> TestResult {
    for (version, warned) in [("v1beta1", true), ("v1beta2", false)] {
        let path = format!("/apis/cluster.x-k8s.io/{version}/namespaces/{}/machines", context.namespace());
        let answer =
            wire::ask(&context.management().admin(), Method::GET, &path, "application/json", None).await?;
        assert_eq!(answer.code, 200, "{version}: {}", answer.message());
        let deprecated = answer.warnings.iter().any(|text| text.contains("v1beta1 Machine is deprecated"));
        assert_eq!(deprecated, warned, "{version}: {:?}", answer.warnings);
    }
    Ok(())
}

/// k0smotron serves its old version without conversion: renamed fields are dropped silently.
async fn renamed_fields_of_an_older_version_vanish(context: Arc<TestContext>) -> TestResult {
    let old = K0S_WORKER_CONFIG.at("v1beta1");
    let object = json!({
        "apiVersion": old.api_version(), "kind": old.kind, "metadata": { "name": "c" },
        "spec": { "version": "v1.36.4+k0s.0", "preStartCommands": ["echo one"], "args": ["--debug"] },
    });
    create(&context, old, object).await?;
    let new =
        K0S_WORKER_CONFIG.in_namespace(&context.management().admin(), context.namespace()).get("c").await?;
    assert_eq!(new.data["spec"], json!({ "version": "v1.36.4+k0s.0", "args": ["--debug"] }));
    Ok(())
}

/// Measurements of the controller's requests are meaningless if Cluster API itself sends requests all the
/// time.
async fn idle_machine_costs_no_request(context: Arc<TestContext>) -> TestResult {
    let cluster = cluster(&context).await?;
    let made = running(&context, &cluster, MachinePlan::new("m")).await?;
    let quiet = Duration::from_secs(5);
    let settled = wait::until_quiet(&made.machines(), "m", quiet, RUNNING_WITHIN).await?;
    let version = settled.and_then(|machine| machine.resource_version());
    let since = jiff::Timestamp::now();
    let unchanged = |machine: Option<&DynamicObject>| {
        machine.is_some_and(|machine| machine.resource_version() == version)
    };
    wait::while_lasting(&made.machines(), "m", "being left alone", Duration::from_secs(15), unchanged)
        .await?;
    let query = AuditQuery::all().user("system:serviceaccount:capi-system:manager").since(since);
    let requests = context.management().audit_log().read(&query.namespace(context.namespace()))?;
    let about_machine = requests.iter().filter(|record| record.object.resource != "clusters");
    assert_eq!(about_machine.map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    Ok(())
}
