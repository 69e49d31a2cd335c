//! A debug bundle of a real cluster contains no credentials.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use five_spot_testenv::cluster::Side;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::manifests;
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::tests;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::program::five_spot;
use crate::permissions::deploy;

/// A part of every credential.
const CANARY: &str = "c4n4ryV4lue";

pub(crate) fn tests() -> Vec<Test> {
    tests![a_bundle_has_no_credentials]
}

async fn a_bundle_has_no_credentials(context: Arc<TestContext>) -> TestResult {
    let client = context.management().admin();
    let namespace = context.namespace();
    manifests::apply_crds(&client, &manifests::read(&deploy("crds"))?, Duration::from_mins(1)).await?;
    let secret = json!({"metadata": {"name": "edge-kubeconfig"}, "stringData": {"value": CANARY}});
    Api::<Secret>::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    let map = json!({"metadata": {"name": "x"}, "data": {"password": CANARY}});
    Api::<ConfigMap>::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &serde_json::from_value(map)?)
        .await?;
    let gvk = GroupVersionKind::gvk("5spot.finos.org", "v1alpha1", "ScheduledMachine");
    let machines: Api<DynamicObject> = Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&gvk));
    let machine = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "desk-17", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": CANARY}},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "enabled": false}, "clusterName": "edge",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig",
                "spec": {"files": [{"path": "/etc/x", "content": CANARY}], "args": ["--token", CANARY]},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": "192.0.2.17", "sshPrivateKey": format!("-----BEGIN X-----\n{CANARY}\n-----END X-----")},
            },
        },
    });
    machines.create(&PostParams::default(), &serde_json::from_value(machine)?).await?;

    let path = context.directory().join(format!("{namespace}.tar.gz"));
    let file = path.to_str().unwrap_or_default();
    let output =
        five_spot(&context, Side::Management, &["debug-bundle", "-n", namespace, "-f", file]).await?;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(path.metadata()?.permissions().mode() & 0o777, 0o600);
    let again = five_spot(&context, Side::Management, &["debug-bundle", "-n", namespace, "-f", file]).await?;
    assert_eq!(again.status.code(), Some(1), "an existing file is not overwritten");

    let folder = context.directory().join(format!("{namespace}-bundle"));
    std::fs::create_dir(&folder)?;
    let tar =
        tokio::process::Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(&folder).output().await?;
    assert!(tar.status.success(), "{tar:?}");
    let root = folder.join("5spot-debug");
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(root.join("index.json"))?)?;
    let files = index["files"].as_array().cloned().unwrap_or_default();
    for name in files.iter().filter_map(|file| file["path"].as_str()).chain(["index.json", "README.txt"]) {
        let text = std::fs::read_to_string(root.join(name))?;
        assert!(!text.contains(CANARY) && !text.contains("kind: Secret"), "{name}: {text}");
    }
    let machine = std::fs::read_to_string(root.join(format!("scheduledmachines/{namespace}/desk-17.yaml")))?;
    assert!(machine.contains("[REDACTED]") && machine.contains("clusterName: edge"), "{machine}");
    for name in ["versions.json", "events.txt", "doctor.json", "rbac/roles.yaml"] {
        assert!(root.join(name).exists(), "{name} is missing");
    }
    let versions = std::fs::read_to_string(root.join("versions.json"))?;
    assert!(versions.contains("v1.36"), "{versions}");
    Ok(())
}
