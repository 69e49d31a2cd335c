//! Finalizers of absent controllers: on an object, on an object of a deleted CRD, and on a dependent that
//! blocks its owner.

use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wait;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, PostParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::program::{apply_fix, first_cause, five_spot, why};

/// Longer than the minute that an absent controller gets.
const OVERDUE: Duration = Duration::from_secs(65);
const WITHIN: Duration = Duration::from_mins(1);
const FINALIZER: &str = "example.org/cleanup";

pub(crate) fn tests() -> Vec<Test> {
    tests![finalizers_of_absent_controllers_are_named_and_removed, objects_that_never_existed_are_errors]
}

/// Written as an operator would do it, so that the managed fields name it.
fn by_operator() -> PostParams {
    PostParams { field_manager: Some("absent-operator".to_owned()), ..PostParams::default() }
}

async fn finalizers_of_absent_controllers_are_named_and_removed(context: Arc<TestContext>) -> TestResult {
    let client = context.workload().admin();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), context.namespace());
    let owner = json!({"metadata": {"name": "owner"}});
    let owner = maps.create(&PostParams::default(), &serde_json::from_value(owner)?).await?;
    let dependent = json!({"metadata": {"name": "dependent", "finalizers": [FINALIZER], "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "blockOwnerDeletion": true,
    }]}});
    maps.create(&by_operator(), &serde_json::from_value(dependent)?).await?;
    let definition = definition(&context);
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition.clone())?).await?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let established = |it: &CustomResourceDefinition| {
        let conditions = it.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    wait::until_present(&definitions, &name, "to be established", WITHIN, established).await?;
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let widgets: Api<DynamicObject> = Api::namespaced_with(
        client,
        context.namespace(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Widget")),
    );
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w", "finalizers": [FINALIZER]},
    });
    widgets.create(&by_operator(), &serde_json::from_value(widget)?).await?;

    let foreground =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    maps.delete("owner", &foreground).await?;
    definitions.delete(&name, &DeleteParams::default()).await?;
    let deleting = |it: &DynamicObject| it.metadata.deletion_timestamp.is_some();
    wait::until_present(&widgets, "w", "to be deleted", WITHIN, deleting).await?;
    let deleting = |it: &ConfigMap| it.metadata.deletion_timestamp.is_some();
    wait::until_present(&maps, "dependent", "to be deleted", WITHIN, deleting).await?;

    let answer = why(&context, Side::Workload, &[&format!("crd/{name}")]).await?;
    assert_eq!(answer["state"], "deleting", "no controller has had time to act");
    wait::while_lasting(&widgets, "w", "being there", OVERDUE, |it| it.is_some()).await?;

    let answer = why(&context, Side::Workload, &["configmap/owner", "-n", context.namespace()]).await?;
    assert_eq!((&answer["state"], first_cause(&answer)), (&json!("stuck"), "ConfigMap dependent".to_owned()));
    apply_fix(&context, Side::Workload, &answer).await?;
    wait::until_gone(&maps, "owner", WITHIN).await?;

    let answer = why(&context, Side::Workload, &[&format!("crd/{name}")]).await?;
    assert_eq!((&answer["state"], first_cause(&answer)), (&json!("stuck"), "Widget w".to_owned()));
    let cause = answer["causes"][0]["cause"].as_str().unwrap_or_default();
    assert!(cause.starts_with("absent-operator has to remove the finalizer"), "{cause}");
    assert!(answer["causes"][0]["fix"][0]["warning"].as_str().is_some_and(|it| it.contains("stays behind")));
    apply_fix(&context, Side::Workload, &answer).await?;
    wait::until_gone(&definitions, &name, WITHIN).await?;
    Ok(())
}

fn definition(context: &TestContext) -> serde_json::Value {
    let group = format!("{}.example.org", context.namespace());
    json!({
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Exit code 1 with one line; a kind that does not exist is a usage error.
async fn objects_that_never_existed_are_errors(context: Arc<TestContext>) -> TestResult {
    let namespace = context.namespace();
    for (object, code, message) in [
        ("pod/nobody", 1, "there is no Pod"),
        ("pdo/nobody", 2, "did you mean pods"),
        ("machine.cluster.x-k8s.io/nobody", 2, "serves no kind"),
        ("nothing", 2, "is not KIND/NAME"),
    ] {
        let output = five_spot(&context, Side::Workload, &["why", object, "-n", namespace]).await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{object}: {stderr}");
        assert!(
            stderr.contains(message) && stderr.lines().count() == 1 && output.stdout.is_empty(),
            "{object}: {stderr}"
        );
    }
    Ok(())
}
