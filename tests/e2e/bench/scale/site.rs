//! An API server with many objects, and the controller that works on them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_standins::provider_crds;
use five_spot_testenv::audit::AuditLog;
use five_spot_testenv::identity::ServiceAccountIdentity;
use five_spot_testenv::manifests;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::objects::{self, Window};
use crate::permissions::deploy;
use crate::startup::{Bare, Program, shipped_definition};

/// Requests of the benchmark itself at a time.
const AT_A_TIME: usize = 16;

/// For definitions on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_mins(1);

/// The API server, without any other component of Cluster API: its Machines stay as the controller has made them.
pub(super) struct Site {
    bare: Bare,
    controller: PathBuf,
    identity: ServiceAccountIdentity,
}

impl Site {
    pub(super) async fn start(controller: &Path) -> anyhow::Result<Self> {
        let bare = Bare::start(super::WORD).await?;
        bare.define(&shipped_definition()).await?;
        bare.install_cluster_api().await?;
        manifests::apply_crds(&bare.admin(), &provider_crds(), SERVED_WITHIN).await?;
        let identity = bare.account("5spot-controller", &Value::Array(rules()?)).await?;
        Ok(Self { bare, controller: controller.to_path_buf(), identity })
    }

    pub(super) async fn stop(&self) -> anyhow::Result<()> {
        self.bare.stop().await
    }

    pub(super) fn audit_log(&self) -> AuditLog {
        self.bare.control_plane().management().audit_log()
    }

    pub(super) const fn identity(&self) -> &ServiceAccountIdentity {
        &self.identity
    }

    pub(super) fn admin(&self) -> Client {
        self.bare.admin()
    }

    /// A namespace with a Cluster, and the kubeconfig of the same API server for its Nodes.
    pub(super) async fn namespace(&self, name: &str) -> anyhow::Result<()> {
        for document in objects::surroundings(name, &self.identity.kubeconfig(None)) {
            self.bare.apply(&document).await?;
        }
        Ok(())
    }

    /// Creates objects.
    pub(super) async fn create(
        &self,
        namespace: &str,
        numbers: Range<usize>,
        window: &Window,
    ) -> anyhow::Result<()> {
        let api: Api<ScheduledMachine> = Api::namespaced(self.admin(), namespace);
        stream::iter(numbers)
            .map(|number| {
                let (api, object) = (api.clone(), objects::scheduled_machine(namespace, number, window));
                async move {
                    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
                    anyhow::Ok(())
                }
            })
            .buffer_unordered(AT_A_TIME)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    /// Starts the controller, and returns it with the time until it was ready.
    pub(super) async fn controller(&self, namespace: &str) -> anyhow::Result<(Program, Duration)> {
        self.controller_with(&self.identity.kubeconfig(None), namespace).await
    }

    /// Starts the controller with another kubeconfig.
    pub(super) async fn controller_with(
        &self,
        kubeconfig: &str,
        namespace: &str,
    ) -> anyhow::Result<(Program, Duration)> {
        let begun = std::time::Instant::now();
        let flags = [format!("--watch-namespace={namespace}")];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program =
            Program::start_as(&self.controller, self.bare.directory(), kubeconfig, "bench", &flags).await?;
        program.is_ready().await?;
        Ok((program, begun.elapsed()))
    }

    /// Checks that exactly the expected objects are lent, each with its Machine and its provider objects.
    pub(super) async fn check(&self, namespace: &str, lent: usize) -> anyhow::Result<()> {
        let api: Api<ScheduledMachine> = Api::namespaced(self.admin(), namespace);
        let mut page = ListParams::default().limit(500);
        let mut active = 0;
        loop {
            let found = api.list(&page).await?;
            for object in &found.items {
                let status = object.status.as_ref();
                let phase = status.and_then(|status| status.phase);
                let name = object.metadata.name.as_deref().unwrap_or_default();
                match phase {
                    Some(Phase::Active) => active += 1,
                    Some(Phase::Inactive) => {}
                    other => anyhow::bail!("{name} is {other:?}"),
                }
            }
            let Some(next) = found.metadata.continue_.filter(|next| !next.is_empty()) else { break };
            page = page.continue_token(&next);
        }
        ensure!(active == lent, "{active} objects are Active, not {lent}");
        for (group, kind) in [
            ("cluster.x-k8s.io", "Machine"),
            ("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig"),
            ("infrastructure.cluster.x-k8s.io", "RemoteMachine"),
        ] {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
            let count = count(Api::namespaced_with(self.admin(), namespace, &resource)).await?;
            ensure!(count == lent, "there are {count} {kind}s for {lent} objects");
        }
        Ok(())
    }
}

async fn count(api: Api<DynamicObject>) -> anyhow::Result<usize> {
    // One object, and the server's count of the others.
    let found = api.list_metadata(&ListParams::default().limit(1)).await?;
    let left = usize::try_from(found.metadata.remaining_item_count.unwrap_or_default())?;
    Ok(found.items.len() + left)
}

/// The rules of all roles that the controller has in a small installation whose Nodes are in the same cluster.
fn rules() -> anyhow::Result<Vec<Value>> {
    let mut rules = vec![
        json!({
            "apiGroups": ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"],
            "resources": ["k0sworkerconfigs", "remotemachines"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"],
        }),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}),
    ];
    for file in ["rbac/controller.yaml", "rbac/machine-claims.yaml", "rbac-nodes/nodes.yaml"] {
        for role in manifests::read(&deploy(file))? {
            rules.extend(role["rules"].as_array().into_iter().flatten().cloned());
        }
    }
    ensure!(rules.len() > 2, "no roles in {SYSTEM_NAMESPACE}");
    Ok(rules)
}

/// The time of the first minute boundary that is at least this far away.
pub(super) fn minute_after(wait: Duration) -> anyhow::Result<jiff::Timestamp> {
    let earliest = jiff::Timestamp::now().checked_add(wait)?;
    let minute = earliest.as_second().div_euclid(60) + 1;
    jiff::Timestamp::from_second(minute * 60).context("a time in range")
}
