//! Tokens of the agent's service account, bound to a pod on a node as the kubelet's are.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_testenv::cluster::Cluster;
use five_spot_testenv::kubeconfig::{self, Credentials};
use five_spot_testenv::manifests::Applier;
use five_spot_testenv::pki;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::permissions::deploy;

/// The name of the agent's service account.
pub(super) const ACCOUNT: &str = "5spot-reclaim-agent";

/// The machine id of the Nodes of these tests.
pub(crate) const MACHINE_ID: &str = "0123456789abcdef0123456789abcdef";

/// The shortest lifetime that the API server allows.
const TOKEN_SECONDS: i64 = 600;

/// Applies the shipped manifests of the agent except its DaemonSet, for which these clusters have no image.
pub(crate) async fn install(cluster: &Cluster) -> anyhow::Result<()> {
    let folder = deploy("node-agent");
    let mut applier = Applier::new(cluster.admin());
    for file in ["namespace.yaml", "rbac.yaml", "policy.yaml"] {
        let documents = five_spot_testenv::manifests::read(&folder.join(file))?;
        applier.apply_all(&documents, SYSTEM_NAMESPACE).await?;
    }
    Ok(())
}

/// Makes a Node that reports a machine id, as its kubelet would.
pub(super) async fn node(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kept": "label"}, "annotations": {"kept": "annotation"}},
        "spec": {"taints": [{"key": "kept", "effect": "NoSchedule"}]},
        "status": {"nodeInfo": {
            "machineID": MACHINE_ID, "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
            "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64",
        }},
    });
    let nodes: Api<Node> = Api::all(cluster.admin());
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    Ok(())
}

/// The same token, signed again with the key of its issuer, so that it ends in so many seconds, or has ended.
pub(super) fn ending_in(token: &str, issuer_key: &str, seconds: i64) -> anyhow::Result<String> {
    let (header, rest) = token.split_once('.').context("no header")?;
    let (claims, _) = rest.split_once('.').context("no claims")?;
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    let end = Timestamp::now().as_second() + seconds;
    claims["exp"] = end.into();
    for began in ["iat", "nbf"] {
        claims[began] = (end - 2 * TOKEN_SECONDS).into();
    }
    let unsigned = format!("{header}.{}", URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims)?));
    let signature = pki::sign_token(issuer_key, &unsigned)?;
    Ok(format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A pod of the agent on `node`, and its token.
pub(super) struct BoundToken {
    pods: Api<Pod>,
    pod: String,
    /// The token.
    pub(super) token: String,
}

impl BoundToken {
    /// Makes the pod, whose name is that of its node, and asks for a token.
    pub(super) async fn on(cluster: &Cluster, node: &str) -> anyhow::Result<Self> {
        let pods: Api<Pod> = Api::namespaced(cluster.admin(), SYSTEM_NAMESPACE);
        let name = format!("agent-{node}");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {
                "nodeName": node, "serviceAccountName": ACCOUNT, "automountServiceAccountToken": false,
                "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
                // In the shape that the policy 5spot-pods asks for, which other tests apply.
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "agent", "image": "none",
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
            },
        });
        let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let reference = BoundObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: Some(name.clone()),
            uid: pod.metadata.uid,
        };
        Ok(Self { pods, pod: name, token: token(cluster, Some(reference)).await? })
    }

    /// Deletes the pod, with which the token ends.
    pub(super) async fn delete_pod(&self) -> anyhow::Result<()> {
        self.pods.delete(&self.pod, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }
}

/// A token that is bound to nothing, or to this object.
pub(super) async fn token(cluster: &Cluster, to: Option<BoundObjectReference>) -> anyhow::Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.admin(), SYSTEM_NAMESPACE);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            bound_object_ref: to,
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await?;
    answer.status.and_then(|status| status.token).context("no token")
}

/// A client with this token.
pub(super) async fn client(cluster: &Cluster, token: &str) -> anyhow::Result<Client> {
    let credentials = Credentials::Token(token.to_owned());
    Ok(kubeconfig::client(&cluster.kubeconfig_for(&credentials, None), "5spot-e2e-agent/1").await?)
}

/// The JSON patch that an agent sends.
pub(super) fn reclaim_patch() -> Value {
    let annotation = |key: &str, value: &str| {
        let path = format!("/metadata/annotations/5spot.finos.org~1{key}");
        json!({"op": "add", "path": path, "value": value})
    };
    json!([
        {"op": "test", "path": "/status/nodeInfo/machineID", "value": MACHINE_ID},
        annotation("reclaim-requested", "true"),
        annotation("reclaim-reason", "process-match: java"),
        annotation("reclaim-requested-at", "2026-11-17T08:30:00.123Z"),
    ])
}
