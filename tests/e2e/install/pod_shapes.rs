//! The pods that Pod Security and the policy `5spot-pods` admit to `5spot-system`, and those that they reject.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_scenarios::merge;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::wire::{WireResponse, ask};
use http::Method;
use serde_json::{Value, json};

/// The pod of a Deployment, `StatefulSet` or `DaemonSet` among documents.
pub(crate) fn pod_of(documents: &[Value], kind: &str) -> anyhow::Result<Value> {
    let owner = documents.iter().find(|one| one["kind"] == kind).with_context(|| format!("no {kind}"))?;
    let template = &owner["spec"]["template"];
    Ok(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shape", "labels": template["metadata"]["labels"]}, "spec": template["spec"],
    }))
}

/// The answer to the creation of a pod, by dry run.
pub(super) async fn create(cluster: &Cluster, pod: &Value) -> anyhow::Result<WireResponse> {
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods?dryRun=All&fieldValidation=Strict");
    Ok(ask(&cluster.admin(), Method::POST, &path, "application/json", Some(pod)).await?)
}

/// Waits until the policy takes effect, a moment after it is accepted: until it rejects this pod of the agent as one of
/// another account.
pub(crate) async fn until_in_force(cluster: &Cluster, agent: &Value, within: Duration) -> anyhow::Result<()> {
    let stranger = with_account(agent, "default");
    let asked = async {
        while create(cluster, &stranger).await?.code == 201 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(within, asked).await.context("the policy 5spot-pods does not take effect")?
}

/// A pod that must be rejected: what is wrong with it, the pod, and words of the policy's message.
type Rejected = (&'static str, Value, &'static str);

/// With the level `restricted` alone, the pod is admitted, and each loosened one is rejected by Pod Security.
pub(super) async fn are_restricted(cluster: &Cluster, pod: &Value) -> anyhow::Result<()> {
    let admitted = create(cluster, pod).await?;
    ensure!(admitted.code == 201 && admitted.warnings.is_empty(), "{admitted:?}");
    for (what, loose, _) in loosened(pod) {
        let rejected = create(cluster, &loose).await?;
        ensure!(rejected.code == 403, "{what}: {rejected:?}");
        let message = rejected.message();
        ensure!(message.contains("violates PodSecurity \"restricted"), "{what}: {message}");
    }
    Ok(())
}

/// In a namespace with agents the controller's pod is admitted, and each loosened one is rejected by the policy; so are the pods of
/// others, and agents with more of the host than they need.
pub(super) async fn are_held_by_the_policy(
    cluster: &Cluster,
    controller: &Value,
    agent: &Value,
) -> anyhow::Result<()> {
    for pod in [controller, agent] {
        let admitted = create(cluster, pod).await?;
        ensure!(admitted.code == 201, "{admitted:?}");
    }
    let strangers = [
        ("a pod of another account", with_account(controller, "default"), "only pods of the ServiceAccounts"),
        (
            "an agent of the controller's account",
            with_account(agent, "5spot-controller"),
            "namespace of the host",
        ),
    ];
    let beyond = [
        ("a safe sysctl", pod_with(controller, safe_sysctl()), "may not set sysctls"),
        ("a low port", container_with(controller, &add("NET_BIND_SERVICE")), "no capability may be added"),
    ];
    let rejected = loosened(controller).into_iter().chain(strangers).chain(beyond).chain(greedy(agent));
    for (what, pod, words) in rejected {
        is_rejected(what, &create(cluster, &pod).await?, words)?;
    }
    Ok(())
}

/// A container that is added to a running pod is held to the same rules.
pub(super) async fn debug_containers_are_held_by_the_policy(
    cluster: &Cluster,
    pod: &str,
) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{pod}/ephemeralcontainers?dryRun=All");
    let kind = "application/strategic-merge-patch+json";
    let mut container = json!({
        "name": "debug", "image": "example.org/debug:1",
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    let adding = |container: &Value| json!({"spec": {"ephemeralContainers": [container]}});
    let admitted = ask(&cluster.admin(), Method::PATCH, &path, kind, Some(&adding(&container))).await?;
    ensure!(admitted.code == 200, "{admitted:?}");
    container["securityContext"]["capabilities"] = json!({"drop": ["ALL"], "add": ["SYS_PTRACE"]});
    let answer = ask(&cluster.admin(), Method::PATCH, &path, kind, Some(&adding(&container))).await?;
    is_rejected("a debug container with a capability", &answer, "no capability may be added")
}

fn is_rejected(what: &str, answer: &WireResponse, words: &str) -> anyhow::Result<()> {
    ensure!(answer.code == 403, "{what}: {answer:?}");
    let message = answer.message();
    ensure!(message.contains("ValidatingAdmissionPolicy '5spot-pods'"), "{what}: {message}");
    ensure!(message.contains(words), "{what}: no {words:?} in {message}");
    Ok(())
}

fn with_account(pod: &Value, account: &str) -> Value {
    pod_with(pod, json!({"serviceAccountName": account}))
}

/// The pod with a merge patch of its spec.
fn pod_with(pod: &Value, change: Value) -> Value {
    let mut pod = pod.clone();
    merge(&mut pod["spec"], change);
    pod
}

/// The pod with a merge patch of its container.
fn container_in(pod: &Value, change: Value) -> Value {
    let mut pod = pod.clone();
    merge(&mut pod["spec"]["containers"][0], change);
    pod
}

/// The pod with a merge patch of the security context of its container.
fn container_with(pod: &Value, change: &Value) -> Value {
    container_in(pod, json!({"securityContext": change}))
}

fn add(capability: &str) -> Value {
    json!({"capabilities": {"add": [capability]}})
}

fn safe_sysctl() -> Value {
    json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}})
}

/// The controller's pod without each of what makes it restricted: one for each check of the level, on the pod and on a
/// container where both can be set.
fn loosened(pod: &Value) -> Vec<Rejected> {
    let settings = |change: Value| pod_with(pod, json!({"securityContext": change}));
    let container = |change: Value| container_with(pod, &change);
    let volume = |name: &str, source: Value| pod_with(pod, json!({"volumes": [{"name": "x", name: source}]}));
    let unconfined = json!({"type": "Unconfined"});
    let (host, types) = ("namespace of the host", "volumes must be of the types");
    let (root, seccomp, privilege) =
        ("must set runAsNonRoot", "seccomp profile", "must set allowPrivilegeEscalation");
    let (se_linux, armor, other_host) = ("SELinux user or role", "AppArmor", "may not name a host");
    let elsewhere = json!({"httpGet": {"host": "example.org", "port": 80}});
    let mut annotated = pod.clone();
    let name = pod["spec"]["containers"][0]["name"].as_str().unwrap_or_default();
    let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    annotated["metadata"]["annotations"] = json!({key: "unconfined"});
    vec![
        (
            "a host process of Windows",
            pod_with(
                pod,
                json!({"hostNetwork": true, "securityContext": {"windowsOptions": {"hostProcess": true}}}),
            ),
            "host processes of Windows",
        ),
        ("the network of the host", pod_with(pod, json!({"hostNetwork": true})), host),
        ("the processes of the host", pod_with(pod, json!({"hostPID": true})), host),
        ("the IPC of the host", pod_with(pod, json!({"hostIPC": true})), host),
        ("files of the host", volume("hostPath", json!({"path": "/"})), types),
        ("an NFS volume", volume("nfs", json!({"server": "example.org", "path": "/"})), types),
        (
            "an iSCSI volume",
            volume(
                "iscsi",
                json!({"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.org.example:x", "lun": 0}),
            ),
            types,
        ),
        ("root", settings(json!({"runAsNonRoot": null, "runAsUser": 0})), root),
        ("maybe root", settings(json!({"runAsNonRoot": null})), root),
        ("a container of root", container(json!({"runAsUser": 0})), root),
        (
            "root but for the container",
            container_with(&settings(json!({"runAsUser": 0})), &json!({"runAsUser": 1000})),
            root,
        ),
        ("a container that may be root", container(json!({"runAsNonRoot": false})), root),
        ("no seccomp profile", settings(json!({"seccompProfile": null})), seccomp),
        ("seccomp off", settings(json!({"seccompProfile": unconfined})), seccomp),
        ("seccomp off in a container", container(json!({"seccompProfile": unconfined})), seccomp),
        (
            "seccomp off but for the container",
            container_with(
                &settings(json!({"seccompProfile": unconfined})),
                &json!({"seccompProfile": {"type": "RuntimeDefault"}}),
            ),
            seccomp,
        ),
        ("privilege escalation", container(json!({"allowPrivilegeEscalation": null})), privilege),
        (
            "all privileges",
            container(json!({"allowPrivilegeEscalation": null, "privileged": true})),
            privilege,
        ),
        ("all capabilities", container(json!({"capabilities": null})), privilege),
        ("a further capability", container(add("NET_ADMIN")), "no capability may be added"),
        (
            "an unmasked /proc",
            container_with(&pod_with(pod, json!({"hostUsers": false})), &json!({"procMount": "Unmasked"})),
            "how /proc is mounted",
        ),
        (
            "an unsafe sysctl",
            settings(json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
            "may not set sysctls",
        ),
        ("AppArmor off", settings(json!({"appArmorProfile": unconfined})), armor),
        ("AppArmor off in a container", container(json!({"appArmorProfile": unconfined})), armor),
        ("AppArmor off by annotation", annotated, armor),
        ("an SELinux type", settings(json!({"seLinuxOptions": {"type": "spc_t"}})), se_linux),
        ("an SELinux user", container(json!({"seLinuxOptions": {"user": "system_u"}})), se_linux),
        ("an SELinux role", container(json!({"seLinuxOptions": {"role": "system_r"}})), se_linux),
        (
            "a port of the host",
            container_in(pod, json!({"ports": [{"containerPort": 8080, "hostPort": 8080}]})),
            "ports of the host",
        ),
        ("a probe elsewhere", container_in(pod, json!({"livenessProbe": elsewhere})), other_host),
        ("a hook elsewhere", container_in(pod, json!({"lifecycle": {"preStop": elsewhere}})), other_host),
        (
            "an unlimited init container",
            pod_with(pod, json!({"initContainers": [{"name": "first", "image": "example.org/first:1"}]})),
            privilege,
        ),
    ]
}

/// The agent's pod with more of the host than it needs.
fn greedy(agent: &Value) -> Vec<Rejected> {
    let settings = |change: Value| pod_with(agent, json!({"securityContext": change}));
    let container = |change: Value| container_with(agent, &change);
    let unconfined = json!({"type": "Unconfined"});
    let files = "may use /etc/machine-id only";
    let mut every_file = agent.clone();
    every_file["spec"]["volumes"][0]["hostPath"] = json!({"path": "/"});
    let mut written = agent.clone();
    written["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] = false.into();
    let mut remote = agent.clone();
    remote["spec"]["volumes"][1] = json!({"name": "state", "nfs": {"server": "example.org", "path": "/"}});
    vec![
        (
            "a privileged agent",
            container(json!({"privileged": true, "allowPrivilegeEscalation": null})),
            "must set allowPrivilegeEscalation",
        ),
        ("an agent with more capabilities", container(add("SYS_ADMIN")), "no capability may be added"),
        ("an agent with all files of the host", every_file, files),
        ("an agent that writes the machine id", written, files),
        ("an agent with files of others", remote, "volumes must be of the types"),
        ("an agent with the IPC of the host", pod_with(agent, json!({"hostIPC": true})), "IPC namespace"),
        ("an agent without seccomp", settings(json!({"seccompProfile": unconfined})), "seccomp profile"),
        ("an agent without AppArmor", settings(json!({"appArmorProfile": unconfined})), "AppArmor"),
        (
            "an agent with a sysctl",
            settings(json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
            "may not set sysctls",
        ),
        (
            "an agent that listens",
            container_in(agent, json!({"ports": [{"containerPort": 9}]})),
            "ports of the host",
        ),
    ]
}
