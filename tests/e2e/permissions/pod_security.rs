//! The Deployment in a namespace with the Pod Security level `restricted`.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use five_spot_testenv::wire::{WireResponse, ask};
use http::Method;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::audit::deploy;

pub(crate) fn tests() -> Vec<Test> {
    tests![the_deployment_is_admitted_where_pod_security_is_restricted]
}

async fn the_deployment_is_admitted_where_pod_security_is_restricted(
    context: Arc<TestContext>,
) -> TestResult {
    let namespaces: Api<Namespace> = Api::all(context.management().admin());
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
    });
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    namespaces.patch(context.namespace(), &PatchParams::default(), &patch).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(context.management().admin(), context.namespace());
    let metadata = ObjectMeta { name: Some("5spot-controller".into()), ..ObjectMeta::default() };
    accounts
        .create(&PostParams::default(), &ServiceAccount { metadata, ..ServiceAccount::default() })
        .await?;

    let shipped = manifests::read(&deploy("controller/controller.yaml"))?;
    for document in &shipped {
        let answer = apply(&context, document).await?;
        ensure!(answer.code < 300 && answer.warnings.is_empty(), "{}: {answer:?}", document["kind"]);
    }
    let deployment = shipped.iter().find(|one| one["kind"] == "Deployment").context("no Deployment")?;
    let template = &deployment["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "controller", "labels": template["metadata"]["labels"]}, "spec": template["spec"],
    });
    let admitted = create(&context, &pod).await?;
    ensure!(admitted.code == 201 && admitted.warnings.is_empty(), "{admitted:?}");

    // Each of the restrictive settings is needed.
    for field in [
        "/spec/securityContext/runAsNonRoot",
        "/spec/securityContext/seccompProfile",
        "/spec/containers/0/securityContext/allowPrivilegeEscalation",
        "/spec/containers/0/securityContext/capabilities",
    ] {
        let refused = create(&context, &without(&pod, field)?).await?;
        ensure!(refused.code == 403, "without {field}: {refused:?}");
        ensure!(refused.message().contains("violates PodSecurity \"restricted"), "{}", refused.message());
    }
    let mut loose = deployment.clone();
    loose["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    let warned = apply(&context, &loose).await?;
    ensure!(warned.warnings.iter().any(|text| text.contains("would violate PodSecurity")), "{warned:?}");
    Ok(())
}

fn without(pod: &Value, field: &str) -> anyhow::Result<Value> {
    let mut pod = pod.clone();
    let (parent, name) = field.rsplit_once('/').context("a path")?;
    let parent = pod.pointer_mut(parent).and_then(Value::as_object_mut).context("an object")?;
    ensure!(parent.remove(name).is_some(), "there is no {field}");
    Ok(pod)
}

/// A dry run of what `kubectl apply --server-side` does with a document, in this context's namespace.
async fn apply(context: &TestContext, document: &Value) -> anyhow::Result<WireResponse> {
    let mut document = document.clone();
    document["metadata"]["namespace"] = context.namespace().into();
    let collection = match document["kind"].as_str() {
        Some("Deployment") => "apis/apps/v1",
        _ => "api/v1",
    };
    let plural = format!("{}s", document["kind"].as_str().unwrap_or_default().to_lowercase());
    let name = document["metadata"]["name"].as_str().context("a name")?.to_owned();
    let path = format!(
        "/{collection}/namespaces/{}/{plural}/{name}?dryRun=All&fieldManager=e2e&fieldValidation=Strict",
        context.namespace()
    );
    let media_type = "application/apply-patch+yaml";
    Ok(ask(&context.management().admin(), Method::PATCH, &path, media_type, Some(&document)).await?)
}

async fn create(context: &TestContext, pod: &Value) -> anyhow::Result<WireResponse> {
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All&fieldValidation=Strict", context.namespace());
    Ok(ask(&context.management().admin(), Method::POST, &path, "application/json", Some(pod)).await?)
}
