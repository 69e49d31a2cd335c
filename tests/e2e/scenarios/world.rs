//! A scene of the real control plane as a world for scenarios.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_sandbox::actors as sandbox;
use five_spot_scenarios::kinds::{NODE, SECRET};
use five_spot_scenarios::{Pace, World, Write};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::provider::{Behaviour, Conduct};
use five_spot_testenv::world::Scene;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::controller::Controller;
use super::identities;
use super::journal::Journal;

/// The Secret with the kubeconfig of the controller's own identity. Cluster API needs another, which may delete Nodes.
const SECRET_NAME: &str = "edge-nodes";

/// kwok takes this label for a kubelet that is silent.
const NOT_READY_LABEL: &str = "node-not-ready.stage.kwok.x-k8s.io";

/// A scene with a controller.
pub(super) struct Real {
    scene: Arc<Scene>,
    controller: Controller,
    journal: Journal,
    identities: AtomicU32,
}

impl Real {
    /// Sets the stage and starts the controller.
    pub(super) async fn start(scene: Arc<Scene>) -> anyhow::Result<Self> {
        let identity = identities::management(&scene).await?;
        let kubeconfig = scene.directory().join(format!("{}.kubeconfig", scene.namespace()));
        std::fs::write(&kubeconfig, identity.kubeconfig(None))?;
        let controller = Controller::new(scene.directory(), scene.namespace(), &kubeconfig)?;
        let logs = [scene.management().audit_log(), scene.workload().audit_log()];
        let journal = Journal::begin(scene.namespace(), logs)?;
        let real = Self { scene, controller, journal, identities: AtomicU32::new(0) };
        real.controller.start().await?;
        Ok(real)
    }

    /// What the controller had to say, and what it wrote.
    pub(super) fn told(&self) -> String {
        let writes = self.journal.writes().unwrap_or_default();
        let writes: Vec<String> = writes.iter().map(|write| format!("  {write}")).collect();
        format!(
            "---- the controller's log\n{}\n---- what it wrote\n{}\n---- what went wrong",
            self.controller.log(),
            writes.join("\n")
        )
    }

    /// The account of the controller in the workload cluster, in its latest life.
    fn account(&self, life: u32) -> String {
        format!("{}-{life}", self.scene.namespace())
    }

    async fn kubeconfig(&self) -> anyhow::Result<String> {
        let account = self.account(self.identities.load(Ordering::SeqCst));
        Ok(identities::workload(&self.scene, &account).await?.kubeconfig(None))
    }
}

fn conduct(conduct: sandbox::Conduct) -> Conduct {
    match conduct {
        sandbox::Conduct::Works => Conduct::Works,
        sandbox::Conduct::Hangs => Conduct::Hangs,
        sandbox::Conduct::Fails(reason) => Conduct::Fails(reason),
    }
}

impl World for Real {
    fn management(&self) -> Client {
        self.scene.management().admin()
    }

    fn workload(&self) -> Client {
        self.scene.workload().admin()
    }

    fn namespace(&self) -> &str {
        self.scene.namespace()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn pace(&self) -> Pace {
        Pace {
            patience: Duration::from_secs(110),
            settled_after: Duration::from_secs(4),
            quiet: Duration::from_secs(15),
            is_virtual: false,
        }
    }

    fn spec(&self) -> Value {
        json!({"kubeconfigSecretRef": {"name": SECRET_NAME, "key": "value"}})
    }

    fn address(&self) -> String {
        self.scene.address()
    }

    fn make_cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let world: &dyn World = self;
            let text = self.kubeconfig().await?;
            let secret = json!({"metadata": {"name": SECRET_NAME}, "stringData": {"value": text}});
            world.apply(SECRET, secret).await?;
            self.scene.capi_cluster(name, ControlPlaneOwner::Somebody).await?;
            Ok(())
        }
        .boxed()
    }

    fn provider(&self, wanted: sandbox::Behaviour) {
        self.scene.provider(|behaviour| {
            *behaviour = Behaviour {
                bootstrap: conduct(wanted.bootstrap),
                provision: conduct(wanted.provision),
                join: conduct(wanted.join),
                release: conduct(wanted.release),
                node_goes_with_machine: wanted.node_goes_with_machine,
            };
        });
    }

    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let value = if is_silent { json!("true") } else { Value::Null };
            let world: &dyn World = self;
            let patch = json!({"metadata": {"labels": {NOT_READY_LABEL: value}}});
            world.patch(NODE, node, patch).await.map(drop)
        }
        .boxed()
    }

    fn grant<'a>(&'a self, group: &'a str, plural: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        identities::grant(&self.scene, group, plural).boxed()
    }

    fn kubeconfig_secret(&self) -> Option<String> {
        Some(SECRET_NAME.to_owned())
    }

    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        async move {
            let old = self.account(self.identities.fetch_add(1, Ordering::SeqCst));
            let text = self.kubeconfig().await?;
            // A token dies with its account.
            let accounts: Api<ServiceAccount> = Api::namespaced(self.workload(), SYSTEM_NAMESPACE);
            if accounts.get_opt(&old).await?.is_some() {
                accounts.delete(&old, &DeleteParams::default()).await.context("the old account")?;
            }
            Ok(text)
        }
        .boxed()
    }

    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.controller.start().boxed()
    }

    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.controller.stop().boxed()
    }

    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.controller.kill().map(Ok).boxed()
    }

    fn writes(&self) -> anyhow::Result<Vec<Write>> {
        self.journal.writes()
    }
}
