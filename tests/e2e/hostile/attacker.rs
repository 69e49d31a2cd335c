//! A tenant with the rights of one namespace, who uses all of them against other tenants.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use five_spot_hostile::{Attack, HostileServer};
use five_spot_testenv::test_clusters::TestContext;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Objects that each name a different Secret that does not exist.
const WITHOUT_SECRET: usize = 150;
/// Large Secrets, each named by an object.
const LARGE_SECRETS: usize = 20;
/// The size of a large Secret, close to the limit of etcd.
const LARGE: usize = 900 << 10;
/// Objects that are created at the same time.
const AT_A_TIME: usize = 8;
/// The pause between two changes of a Secret that objects name.
const SECRET_CHANGES_EVERY: Duration = Duration::from_millis(100);

/// Objects whose kubeconfigs name servers that the controller must not connect to.
const REFUSED: [&str; 4] = ["metadata-address", "metadata-number", "metadata-ipv6", "unverified"];

/// The attack, which ends on drop.
pub(crate) struct Attacker {
    servers: Vec<(Attack, HostileServer)>,
    changes: JoinHandle<()>,
    tenant: Tenant,
}

impl Attacker {
    /// Does everything that a tenant can do, with servers that claim to have these Nodes of another tenant.
    pub(crate) async fn start(
        context: &Arc<TestContext>,
        foreign_nodes: Vec<String>,
    ) -> anyhow::Result<Self> {
        let tenant = Tenant { context: Arc::clone(context) };
        let attacks = [
            Attack::EndlessBody,
            Attack::EndlessLine,
            Attack::EndlessPages,
            Attack::TinyObjects,
            Attack::TinyParts,
            Attack::SlowHead,
            Attack::SlowBody,
            Attack::WrongTypes("\u{1b}[31m\nkube-system".to_owned()),
            Attack::Names(vec!["../../../namespaces/kube-system/pods".to_owned(), "a/b".to_owned()]),
            // They enter the JSON unescaped, so that the controller reads a newline and an escape character.
            Attack::Names(vec![
                "x".repeat(1 << 20),
                "a\\nINFO forged".to_owned(),
                "a\\u001b[31mb".to_owned(),
            ]),
            Attack::Redirect("http://169.254.169.254/latest/meta-data".to_owned()),
            Attack::CloseAfter(40),
            Attack::Refuse(500, "x".repeat(900 << 10)),
            Attack::ForeignNodes(foreign_nodes),
        ];
        let mut servers = Vec::new();
        for (number, attack) in attacks.into_iter().enumerate() {
            let server = HostileServer::start_tls(attack.clone()).await?;
            let name = format!("hostile-{number}");
            tenant.create_secret(server.secret(&name)).await?;
            tenant.lend(name.clone(), name, &context.address()).await?;
            servers.push((attack, server));
        }
        // One machine for all of these objects, so that they affect each other.
        let shared = context.address();
        for name in REFUSED {
            tenant.create_secret(kubeconfig_secret(name)).await?;
            tenant.lend(name.to_owned(), name.to_owned(), &shared).await?;
        }
        for number in 0..LARGE_SECRETS {
            let name = format!("large-{number}");
            let junk = STANDARD.encode(vec![b'x'; LARGE]);
            let secret = json!({"metadata": {"name": name}, "data": {"junk": junk, "value": "eA=="}});
            tenant.create_secret(secret).await?;
            tenant.lend(name.clone(), name, &shared).await?;
        }
        stream::iter(0..WITHOUT_SECRET)
            .map(|number| tenant.lend(format!("missing-{number}"), format!("missing-{number}"), &shared))
            .buffer_unordered(AT_A_TIME)
            .try_collect::<()>()
            .await?;
        let changes = tokio::spawn(change_without_end(tenant.secrets()));
        Ok(Self { servers, changes, tenant })
    }

    /// The attacks whose servers the controller has never connected to.
    pub(crate) fn never_reached(&self) -> Vec<&Attack> {
        self.servers
            .iter()
            .filter(|(_, server)| server.connections() == 0)
            .map(|(attack, _)| attack)
            .collect()
    }

    /// The objects of the attacker, as they are now.
    pub(crate) async fn objects(&self) -> anyhow::Result<Vec<DynamicObject>> {
        Ok(self.tenant.objects().list(&ListParams::default()).await?.items)
    }

    /// All requests to hostile servers, by their first lines.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.servers.iter().flat_map(|(_, server)| server.requests()).collect()
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.changes.abort();
    }
}

/// A Secret with the kubeconfig of one of [`REFUSED`].
fn kubeconfig_secret(name: &str) -> Value {
    let cluster = match name {
        "metadata-address" => json!({"server": "https://169.254.169.254"}),
        "metadata-number" => json!({"server": "https://2852039166"}),
        "metadata-ipv6" => json!({"server": "https://[fd00:ec2::254]"}),
        _ => json!({"server": "https://10.255.255.1", "insecure-skip-tls-verify": true}),
    };
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": "a-token"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    json!({"metadata": {"name": name}, "data": {"value": STANDARD.encode(kubeconfig.to_string())}})
}

/// The objects of the hostile namespace.
struct Tenant {
    context: Arc<TestContext>,
}

impl Tenant {
    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.context.management().admin(), self.context.namespace())
    }

    async fn create_secret(&self, secret: Value) -> anyhow::Result<()> {
        self.secrets().create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        Ok(())
    }

    fn objects(&self) -> Api<DynamicObject> {
        let resource = kube::api::ApiResource::erase::<five_spot_api::ScheduledMachine>(&());
        Api::namespaced_with(self.context.management().admin(), self.context.namespace(), &resource)
    }

    async fn lend(&self, name: String, secret: String, address: &str) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine", "metadata": {"name": name},
            "spec": {
                "schedule": {"daysOfWeek": ["mon-sun"]},
                "priority": 100,
                "clusterName": "edge",
                "kubeconfigSecretRef": {"name": secret, "key": "value"},
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                    "spec": {"address": address, "port": 22},
                },
            },
        });
        self.objects().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }
}

/// Changes Secrets that objects name, one after the other.
async fn change_without_end(secrets: Api<Secret>) {
    for round in 0_u64.. {
        let name = format!("large-{}", round % LARGE_SECRETS as u64);
        let patch = json!({"metadata": {"annotations": {"example.org/round": round.to_string()}}});
        // A server that is busy with the attack may refuse a change; the next one follows.
        let _ = secrets.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        tokio::time::sleep(SECRET_CHANGES_EVERY).await;
    }
}
