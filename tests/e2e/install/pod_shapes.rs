//! The pods that Pod Security and the policy `5spot-pods` admit to `5spot-system`, and those that they reject.

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_scenarios::merge;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::wire::{Answer, ask};
use http::Method;
use serde_json::{Value, json};

/// The pod of a Deployment, `StatefulSet` or `DaemonSet` among documents.
pub(super) fn pod_of(documents: &[Value], kind: &str) -> anyhow::Result<Value> {
    let owner = documents.iter().find(|one| one["kind"] == kind).with_context(|| format!("no {kind}"))?;
    let template = &owner["spec"]["template"];
    Ok(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shape", "labels": template["metadata"]["labels"]}, "spec": template["spec"],
    }))
}

/// The answer to the creation of a pod, by dry run.
pub(super) async fn create(cluster: &Cluster, pod: &Value) -> anyhow::Result<Answer> {
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods?dryRun=All&fieldValidation=Strict");
    Ok(ask(&cluster.admin(), Method::POST, &path, "application/json", Some(pod)).await?)
}

/// With the level `restricted` alone, the pod is admitted, and each loosened one is rejected by Pod Security.
pub(super) async fn are_restricted(cluster: &Cluster, pod: &Value) -> anyhow::Result<()> {
    let admitted = create(cluster, pod).await?;
    ensure!(admitted.code == 201 && admitted.warnings.is_empty(), "{admitted:?}");
    for (what, loose) in loosened(pod) {
        let rejected = create(cluster, &loose).await?;
        ensure!(rejected.code == 403, "{what}: {rejected:?}");
        let message = rejected.message();
        ensure!(message.contains("violates PodSecurity \"restricted"), "{what}: {message}");
    }
    Ok(())
}

/// In a namespace with agents the controller's pod is admitted, and each loosened one is rejected by the policy; so are the pods of
/// others.
pub(super) async fn are_held_by_the_policy(
    cluster: &Cluster,
    controller: &Value,
    agent: &Value,
) -> anyhow::Result<()> {
    for pod in [controller, agent] {
        let admitted = create(cluster, pod).await?;
        ensure!(admitted.code == 201, "{admitted:?}");
    }
    let mut rejected = loosened(controller);
    let stranger = |pod: &Value, account: &str| {
        let mut pod = pod.clone();
        pod["spec"]["serviceAccountName"] = account.into();
        pod
    };
    rejected.push(("a pod of another account", stranger(controller, "default")));
    rejected.push(("an agent's pod of the controller's account", stranger(agent, "5spot-controller")));
    let container = |change: Value| {
        let mut pod = agent.clone();
        merge(&mut pod["spec"]["containers"][0]["securityContext"], change);
        pod
    };
    rejected.push((
        "a privileged agent",
        container(json!({"privileged": true, "allowPrivilegeEscalation": null})),
    ));
    rejected.push((
        "an agent with more capabilities",
        container(json!({"capabilities": {"add": ["SYS_ADMIN"]}})),
    ));
    let mut root = agent.clone();
    root["spec"]["volumes"][0]["hostPath"] = json!({"path": "/"});
    rejected.push(("an agent with the files of the host", root));
    for (what, pod) in rejected {
        let answer = create(cluster, &pod).await?;
        ensure!(answer.code == 403 || answer.code == 422, "{what}: {answer:?}");
        let message = answer.message();
        ensure!(message.contains("ValidatingAdmissionPolicy '5spot-pods'"), "{what}: {message}");
    }
    Ok(())
}

/// The controller's pod without each of what makes it restricted.
fn loosened(pod: &Value) -> Vec<(&'static str, Value)> {
    let changed = |change: Value| {
        let mut pod = pod.clone();
        merge(&mut pod["spec"], change);
        pod
    };
    let container = |change: Value| {
        let mut pod = pod.clone();
        merge(&mut pod["spec"]["containers"][0]["securityContext"], change);
        pod
    };
    let host_path = json!([{"name": "host", "hostPath": {"path": "/"}}]);
    vec![
        ("the network of the host", changed(json!({"hostNetwork": true}))),
        ("the processes of the host", changed(json!({"hostPID": true}))),
        ("files of the host", changed(json!({"volumes": host_path}))),
        ("root", changed(json!({"securityContext": {"runAsNonRoot": null, "runAsUser": 0}}))),
        ("no seccomp profile", changed(json!({"securityContext": {"seccompProfile": null}}))),
        ("privilege escalation", container(json!({"allowPrivilegeEscalation": null}))),
        ("all capabilities", container(json!({"capabilities": null}))),
        ("a further capability", container(json!({"capabilities": {"add": ["NET_ADMIN"]}}))),
    ]
}
