//! Scenarios that each need a separate permission, which proves that every grant is needed: the agent's configuration,
//! the owners and namespaces of pods, and the removal of objects for a Machine that was refused.

use super::closing::{never_deletes_pods, slowly};
use super::nodes::replace;
use crate::agent_configs::{agent_configs, until_agent_config};
use crate::environment::Environment;
use crate::fixtures::override_until;
use crate::kinds::{
    ADMISSION_BINDING, ADMISSION_POLICY, BOOTSTRAP, DAEMON_SET, DRAIN_RULE, INFRASTRUCTURE, MACHINE, NODE,
    POD, SCHEDULED_MACHINE,
};
use crate::scenario::{Ending, Scenario, scenarios};
use crate::subject::Subject;
use anyhow::{Context as _, ensure};
use five_spot_api::names;
use five_spot_api::names::annotation::{AGENT_NODE_UID, FORCE_RECONCILE};
use five_spot_api::reclaim::{CONFIG_KEY, config_map};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn scenarios() -> Vec<Scenario> {
    scenarios![
        agent_is_told_what_to_look_for: RealClusterApi => 15,
        daemons_stay_and_namespaces_have_rules: RealClusterApi => 10,
        machine_is_refused: RealClusterApi => 10,
    ]
}

/// The polling interval for objects whose name is not known, or which are in another namespace.
const LOOK: Duration = Duration::from_millis(200);

/// The configuration of a node's agent is created, changed and removed with the configured processes. What someone writes
/// into it by hand stays until the configured processes change, also when the machine joins as another Node.
async fn agent_is_told_what_to_look_for(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, json!({"killIfCommands": ["java"]})).await?;
    let node = subject.node().await?;
    let looks_for = |config: Option<&ConfigMap>, command: &str| {
        let text = config.and_then(|config| config.data.as_ref()?.get(CONFIG_KEY));
        text.is_some_and(|text| text.contains(&format!("\"{command}\"")))
    };
    until_agent_config(env, &node, |config| looks_for(config, "java")).await?;

    let by_hand = json!({"data": {CONFIG_KEY: "match_commands = [\"by-hand\"]\n"}});
    let (name, parameters) = (config_map(&node), PatchParams::default());
    agent_configs(env).patch(&name, &parameters, &Patch::Merge(by_hand)).await?;
    subject.annotate(FORCE_RECONCILE, json!("now")).await?;
    let before = env.get(NODE, &node).await?;
    replace(env, &before, &before["spec"]["providerID"]).await?;
    let after = env.get(NODE, &node).await?;
    let noted = |config: Option<&ConfigMap>| {
        let uid = config.and_then(|config| config.metadata.annotations.as_ref()?.get(AGENT_NODE_UID));
        uid.is_some_and(|uid| after["metadata"]["uid"] == **uid)
    };
    until_agent_config(env, &node, noted).await?;
    let edited = agent_configs(env).get_opt(&name).await?;
    ensure!(looks_for(edited.as_ref(), "by-hand"), "the edit was lost: {edited:?}");

    subject.set(json!({"killIfCommands": ["javac"]})).await?;
    until_agent_config(env, &node, |config| looks_for(config, "javac")).await?;
    subject.set(json!({"killIfCommands": []})).await?;
    until_agent_config(env, &node, |config| config.is_none()).await?;
    subject.until_ready().await?;
    Ok(Ending::phase(subject.name(), "Active").machines(1, 0))
}

/// Pods of a `DaemonSet` that exists are left alone, and so are those that a rule selects by their namespace.
async fn daemons_stay_and_namespaces_have_rules(env: &dyn Environment) -> anyhow::Result<Ending> {
    let subject = Subject::lent(env, slowly()).await?;
    let node = subject.node().await?;
    let label = json!({"example.org/scene": env.namespace()});
    env.patch(NODE, &node, json!({"metadata": {"labels": label}})).await?;
    let daemon = json!({
        "metadata": {"name": "daemon"},
        "spec": {
            "selector": {"matchLabels": {"app": "daemon"}},
            "template": {
                "metadata": {"labels": {"app": "daemon"}},
                "spec": {
                    "nodeSelector": label,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "main", "image": "registry.invalid/sleeper"}],
                },
            },
        },
    });
    env.create(DAEMON_SET, daemon).await?;
    let runs = |set: &Value| set["status"]["numberReady"] == 1;
    env.until(DAEMON_SET, "daemon", "to run on the node", runs).await?;
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": env.namespace()}});
    let pods = json!([{"selector": {"matchLabels": {"app": "kept"}}, "namespaceSelector": here}]);
    let rule = json!({"metadata": {"name": "kept"}, "spec": {"drain": {"behavior": "Skip"}, "pods": pods}});
    env.create(DRAIN_RULE, rule).await?;
    for name in ["kept", "goes"] {
        env.pod_on(&node, name).await?;
    }
    subject.set(override_until("down", env.in_seconds(36_000))).await?;
    subject.until_phase("Inactive").await?;
    let writes = env.writes()?.into_iter();
    let evicted: Vec<String> =
        writes.filter(|write| write.resource == "pods/eviction").map(|write| write.name).collect();
    ensure!(evicted == ["goes"], "only one has to go: {evicted:?}");
    never_deletes_pods(env)?;
    env.delete(DAEMON_SET, "daemon").await?;
    env.delete(POD, "kept").await?;
    Ok(Ending::phase(subject.name(), "Inactive").machines(1, 1))
}

/// A rule of the cluster refuses the Machine. The event counts the refusals, and the objects created for the Machine
/// are removed with the object.
async fn machine_is_refused(env: &dyn Environment) -> anyhow::Result<Ending> {
    forbid_machines(env).await?;
    let subject = Subject::make(env, json!({})).await?;
    let object = subject.until_phase("Error").await?;
    let message = object["status"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains(NOT_TODAY), "{object}");
    let there = |object: &Value| !object.is_null();
    env.until(BOOTSTRAP, &names::bootstrap(subject.name()), "to be made", there).await?;
    env.until(INFRASTRUCTURE, &subject.infrastructure(), "to be made", there).await?;
    ensure!(env.get(MACHINE, &subject.machine()).await?.is_null(), "there is no Machine");
    let events: Api<Event> = Api::namespaced(env.management(), env.namespace());
    let counted = async {
        let is_series =
            |event: &Event| event.reason.as_deref() == Some("ReconcileFailed") && event.series.is_some();
        while !events.list(&ListParams::default()).await?.items.iter().any(is_series) {
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(env.pace().wait_limit, counted).await.context("the failure is not counted")??;
    env.delete(SCHEDULED_MACHINE, subject.name()).await?;
    subject.until_gone().await?;
    subject.until_nothing_left().await?;
    Ok(Ending::gone(subject.name()))
}

/// The message of the rule.
const NOT_TODAY: &str = "no Machines here today";

/// Forbids Machines in this environment's namespace, and waits until that is so.
async fn forbid_machines(env: &dyn Environment) -> anyhow::Result<()> {
    let name = format!("{}-no-machines", env.namespace());
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": env.namespace()}});
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": ["cluster.x-k8s.io"], "apiVersions": ["*"], "resources": ["machines"],
    });
    let policy = json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": NOT_TODAY, "reason": "Invalid"}],
        },
    });
    let binding = json!({
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here},
        },
    });
    env.create(ADMISSION_POLICY, policy).await?;
    env.create(ADMISSION_BINDING, binding).await?;
    let machines: Api<DynamicObject> =
        Api::namespaced_with(env.management(), env.namespace(), &MACHINE.resource());
    let probe = json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind, "metadata": {"name": "probe"},
        "spec": {
            "clusterName": "edge", "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": {"apiGroup": INFRASTRUCTURE.group, "kind": INFRASTRUCTURE.kind, "name": "none"},
        },
    });
    let probe: DynamicObject = serde_json::from_value(probe)?;
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let effective = async {
        // There is no event when a server begins to apply a rule.
        while !machines
            .create(&parameters, &probe)
            .await
            .is_err_and(|error| error.to_string().contains(NOT_TODAY))
        {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(env.pace().wait_limit, effective).await.context("Machines are not forbidden")
}
