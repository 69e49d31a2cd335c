//! The shipped policy on `ConfigMaps`: the controller may write those of reclaim agents and no others, and other users
//! are not restricted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::harness::{Test, TestResult};
use five_spot_testenv::test_clusters::TestContext;
use five_spot_testenv::{manifests, tests};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::timeout;

use super::deploy;
use crate::scenarios::controller_identity;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[alone]
        the_controller_writes_no_config_map_but_those_of_agents
    ]
}

/// The time limit: a policy takes effect a moment after its creation.
const WITHIN: Duration = Duration::from_mins(1);
const ASK_EVERY: Duration = Duration::from_millis(200);

const AGENT: &str = "reclaim-agent-node-of-the-policy-test";

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, SYSTEM_NAMESPACE)
}

/// Returns true if the policy, and no other check, has refused a request.
fn is_denied<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status))
        if status.code == 403 && status.message.contains("ValidatingAdmissionPolicy '5spot-agent-configs'"))
}

async fn the_controller_writes_no_config_map_but_those_of_agents(context: Arc<TestContext>) -> TestResult {
    let identity = controller_identity(&context).await?;
    let admin = context.management().admin();
    let mut applier = manifests::Applier::new(admin.clone());
    applier.apply_all(&manifests::read(&deploy("rbac-nodes/nodes.yaml"))?, SYSTEM_NAMESPACE).await?;
    let ours = config_maps(admin);
    let controller = config_maps(identity.client("policy-test").await?);
    let created = PostParams::default();
    for name in ["5spot-config", "another"] {
        ours.create(&created, &config_map(name)).await?;
    }

    // Without the policy the role is enough to write any of them: this shows that the policy makes the
    // difference.
    let patch = |value: &str| Patch::Merge(json!({"data": {"key": value}}));
    controller.patch("5spot-config", &PatchParams::default(), &patch("before")).await?;
    let policy = manifests::read(&deploy("policies/agent-configs.yaml"))?;
    applier.apply_all(&policy, "").await?;
    let effective = async {
        while !is_denied(&controller.patch("5spot-config", &PatchParams::default(), &patch("after")).await) {
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    if timeout(WITHIN, effective).await.is_err() {
        bail!("the policy does not take effect");
    }

    ensure!(is_denied(&controller.create(&created, &config_map("made-by-it")).await), "it may create others");
    ensure!(is_denied(&controller.delete("another", &DeleteParams::default()).await), "it may delete others");
    controller.create(&created, &config_map(AGENT)).await?;
    controller.patch(AGENT, &PatchParams::default(), &patch("agent")).await?;
    controller.delete(AGENT, &DeleteParams::default()).await?;
    for name in ["5spot-config", "another"] {
        ours.patch(name, &PatchParams::default(), &patch("another user")).await?;
        ours.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}
