//! A context of the real control plane as an environment for scenarios.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_scenarios::kinds::{self, NODE, SECRET};
use five_spot_scenarios::{Environment, Impairment, Pace, ServerState, Steps, Write, WrongServer};
use five_spot_testenv::capi_cluster::ControlPlaneOwner;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
use five_spot_testenv::provider::ProviderBehaviour;
use five_spot_testenv::proxy::{Line, Proxy};
use five_spot_testenv::test_clusters::TestContext;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use super::controller::Controller;
use super::identities;
use super::impairments;
use super::journal::Journal;
use super::not_an_api::NotAnApi;
use super::old_cluster_api::OldClusterApi;

/// The Secret with the kubeconfig of the controller's own identity. Cluster API uses a different one, which
/// may delete Nodes.
const SECRET_NAME: &str = "edge-nodes";

/// A label that makes kwok simulate a kubelet that does not report.
const NOT_READY_LABEL: &str = "node-not-ready.stage.kwok.x-k8s.io";

/// The view of the management cluster that the controller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Everything.
    Whole,
    /// Only the versions of Cluster API before v1beta2.
    OldClusterApi,
    /// Its own namespace, by Roles.
    RolesOnly,
}

/// A context with a controller.
pub(crate) struct RealControlPlane {
    context: Arc<TestContext>,
    controller: Controller,
    journal: Journal,
    identities: AtomicU32,
    /// The filter between the controller and the management cluster.
    filter: Option<OldClusterApi>,
    /// A proxy to the workload cluster that can hang.
    other_line: OnceCell<Proxy>,
    killed: Mutex<BTreeSet<Side>>,
    steps: Steps,
    /// A server that is not an API server.
    not_an_api: OnceCell<NotAnApi>,
}

impl RealControlPlane {
    /// Sets up the environment and starts the controller.
    pub(crate) async fn start(context: Arc<TestContext>, view: View) -> anyhow::Result<Self> {
        let identity = match view {
            View::Whole | View::OldClusterApi => identities::management(&context).await?,
            View::RolesOnly => crate::permissions::roles_only(&context).await?,
        };
        let kubeconfig = context.directory().join(format!("{}.kubeconfig", context.namespace()));
        let filter = match view {
            View::Whole | View::RolesOnly => None,
            View::OldClusterApi => Some(OldClusterApi::start(&identity.kubeconfig(None)).await?),
        };
        let server = filter.as_ref().map(OldClusterApi::server);
        std::fs::write(&kubeconfig, identity.kubeconfig(server.as_deref()))?;
        let controller = Controller::new(context.directory(), context.namespace(), &kubeconfig)?;
        let logs = [context.management().audit_log(), context.workload().audit_log()];
        let journal = Journal::begin(context.namespace(), logs)?;
        let real = Self {
            context,
            controller,
            journal,
            identities: AtomicU32::new(0),
            filter,
            other_line: OnceCell::new(),
            killed: Mutex::default(),
            steps: Steps::default(),
            not_an_api: OnceCell::new(),
        };
        real.controller.start().await?;
        Ok(real)
    }

    /// The log and the writes of the controller.
    pub(crate) fn failure_report(&self) -> String {
        let writes = self.journal.writes().unwrap_or_default();
        let writes: Vec<String> = writes.iter().map(|write| format!("  {write}")).collect();
        format!(
            "---- the controller's log\n{}\n---- what it wrote\n{}\n---- what went wrong",
            self.controller.log(),
            writes.join("\n")
        )
    }

    /// The account of the controller in the workload cluster, with its latest credentials.
    fn account(&self, number: u32) -> String {
        format!("{}-{number}", self.context.namespace())
    }

    /// The account of the controller in the workload cluster.
    fn current_account(&self) -> String {
        self.account(self.identities.load(Ordering::SeqCst))
    }

    async fn kubeconfig(&self) -> anyhow::Result<String> {
        self.kubeconfig_by(None).await
    }

    async fn kubeconfig_by(&self, server: Option<&str>) -> anyhow::Result<String> {
        Ok(identities::workload(&self.context, &self.current_account()).await?.kubeconfig(server))
    }
}

impl Environment for RealControlPlane {
    fn management(&self) -> Client {
        self.context.management().admin()
    }

    fn workload(&self) -> Client {
        self.context.workload().admin()
    }

    fn namespace(&self) -> &str {
        self.context.namespace()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn pace(&self) -> Pace {
        Pace {
            wait_limit: Duration::from_secs(110),
            settled_after: Duration::from_secs(4),
            quiet: Duration::from_secs(15),
            is_virtual: false,
            // Real components respond later than stand-ins, and many scenarios share two processors.
            time_factor: 15,
        }
    }

    fn steps(&self) -> &Steps {
        &self.steps
    }

    fn cluster_api(&self) -> &'static str {
        if self.filter.is_some() { "v1beta1" } else { "v1beta2" }
    }

    fn spec(&self) -> Value {
        json!({"kubeconfigSecretRef": {"name": SECRET_NAME, "key": "value"}})
    }

    fn address(&self) -> String {
        self.context.address()
    }

    fn make_cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        async move {
            let env: &dyn Environment = self;
            let text = self.kubeconfig().await?;
            let secret = json!({"metadata": {"name": SECRET_NAME}, "stringData": {"value": text}});
            env.apply(SECRET, secret).await?;
            self.context.capi_cluster(name, ControlPlaneOwner::External).await?;
            Ok(())
        }
        .boxed()
    }

    fn provider(&self, wanted: ProviderBehaviour) {
        self.steps.note(self.now());
        self.context.provider(|behaviour| *behaviour = wanted);
    }

    fn silence<'a>(&'a self, node: &'a str, is_silent: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        self.steps.note(self.now());
        async move {
            let value = if is_silent { json!("true") } else { Value::Null };
            let env: &dyn Environment = self;
            let patch = json!({"metadata": {"labels": {NOT_READY_LABEL: value}}});
            env.patch(NODE, node, patch).await.map(drop)
        }
        .boxed()
    }

    fn cut_off<'a>(&'a self, _: &'a str, is_cut_off: bool) -> BoxFuture<'a, anyhow::Result<()>> {
        self.steps.note(self.now());
        let control_plane = self.context.clusters().control_plane();
        async move {
            // One process runs all kubelets.
            if is_cut_off {
                control_plane.freeze(Component::Kwok).await;
            } else {
                control_plane.thaw(Component::Kwok).await;
            }
            Ok(())
        }
        .boxed()
    }

    fn grant<'a>(&'a self, group: &'a str, plural: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        identities::grant(&self.context, group, plural).boxed()
    }

    fn kubeconfig_secret(&self) -> Option<String> {
        Some(SECRET_NAME.to_owned())
    }

    fn new_kubeconfig(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        self.steps.note(self.now());
        async move {
            let old = self.account(self.identities.fetch_add(1, Ordering::SeqCst));
            let text = self.kubeconfig().await?;
            // A token becomes invalid when its account is deleted.
            let accounts: Api<ServiceAccount> = Api::namespaced(self.workload(), SYSTEM_NAMESPACE);
            if accounts.get_opt(&old).await?.is_some() {
                accounts.delete(&old, &DeleteParams::default()).await.context("the old account")?;
            }
            Ok(text)
        }
        .boxed()
    }

    fn kubeconfig_by_another_line(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        async move {
            let proxy = self.other_line.get_or_try_init(|| self.context.proxy(Side::Workload)).await?;
            self.kubeconfig_by(Some(&proxy.server())).await
        }
        .boxed()
    }

    fn set_other_line(&self, state: ServerState) {
        self.steps.note(self.now());
        if let Some(proxy) = self.other_line.get() {
            proxy.set(match state {
                ServerState::Up => Line::Open,
                ServerState::Silent => Line::Hung,
                ServerState::Down => Line::Cut,
            });
        }
    }

    fn kubeconfig_to(&self, server: WrongServer) -> BoxFuture<'_, anyhow::Result<String>> {
        async move {
            match server {
                WrongServer::OtherCluster => {
                    let identity = identities::other_cluster(&self.context, &self.current_account()).await?;
                    Ok(identity.kubeconfig(None))
                }
                WrongServer::NoApi => {
                    Ok(self.not_an_api.get_or_try_init(NotAnApi::start).await?.kubeconfig())
                }
            }
        }
        .boxed()
    }

    fn set_impaired(&self, what: Impairment, is_impaired: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        async move {
            let account = self.current_account();
            impairments::set(self, &self.context, &account, what, is_impaired).await
        }
        .boxed()
    }

    fn set_api_server(
        &self,
        side: kinds::ClusterRole,
        state: ServerState,
    ) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        async move {
            let control_plane = self.context.clusters().control_plane();
            let side = match side {
                kinds::ClusterRole::Management => Side::Management,
                kinds::ClusterRole::Workload => Side::Workload,
            };
            let (server, mut killed) = (Component::ApiServer(side), self.killed.lock().await);
            match state {
                ServerState::Silent => control_plane.freeze(server).await,
                ServerState::Down => {
                    control_plane.kill(server).await;
                    killed.insert(side);
                }
                ServerState::Up if killed.remove(&side) => control_plane.restart(server).await?,
                ServerState::Up => control_plane.thaw(server).await,
            }
            Ok(())
        }
        .boxed()
    }

    fn allow_node_writes(&self, is_allowed: bool) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        async move { identities::allow_node_writes(&self.context, &self.current_account(), is_allowed).await }
            .boxed()
    }

    fn start_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        self.controller.start().boxed()
    }

    fn stop_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        self.controller.stop().boxed()
    }

    fn crash_controller(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        self.steps.note(self.now());
        self.controller.kill().map(Ok).boxed()
    }

    fn writes(&self) -> anyhow::Result<Vec<Write>> {
        self.journal.writes()
    }
}
