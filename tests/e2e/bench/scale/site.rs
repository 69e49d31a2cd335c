//! An API server with many objects, and the controller that works on them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_api::{Phase, ScheduledMachine};
use five_spot_standins::provider_crds;
use five_spot_testenv::audit::AuditLog;
use five_spot_testenv::cluster::Side;
use five_spot_testenv::control_plane::Component;
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

/// Objects in one answer of a list.
const PAGE: u32 = 500;

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
        for document in objects::namespace_objects(name, &self.identity.kubeconfig(None)) {
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

    /// Starts a replica that takes part in the election of a leader. Its token is that of a pod of this name, by which the
    /// audit log tells it from others.
    pub(super) async fn replica(
        &self,
        name: &str,
        namespace: &str,
        lease: [Duration; 2],
    ) -> anyhow::Result<Program> {
        let identity = self.identity.bound_to_pod(name).await?;
        let [duration, deadline] = lease.map(|time| time.as_secs());
        let flags = [
            "--enable-leader-election".to_owned(),
            format!("--watch-namespace={namespace}"),
            format!("--lease-duration-secs={duration}"),
            format!("--lease-renew-deadline-secs={deadline}"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let directory = self.bare.directory();
        let program = Program::start_file(&self.controller, directory, &identity, name, &flags).await?;
        program.is_ready().await?;
        Ok(program)
    }

    /// Kills the API server, starts it again, and returns the time until it was ready.
    pub(super) async fn restart_api_server(&self) -> anyhow::Result<Duration> {
        let begun = std::time::Instant::now();
        self.bare.control_plane().restart(Component::ApiServer(Side::Management)).await?;
        Ok(begun.elapsed())
    }

    /// Applies an object of the surroundings.
    pub(super) async fn apply(&self, document: &Value) -> anyhow::Result<()> {
        self.bare.apply(document).await
    }

    /// All objects of a namespace.
    pub(super) async fn objects(&self, namespace: &str) -> anyhow::Result<Vec<ScheduledMachine>> {
        let api: Api<ScheduledMachine> = Api::namespaced(self.admin(), namespace);
        let mut page = ListParams::default().limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let found = api.list(&page).await?;
            objects.extend(found.items);
            let Some(next) = found.metadata.continue_.filter(|next| !next.is_empty()) else {
                return Ok(objects);
            };
            page = page.continue_token(&next);
        }
    }

    /// Checks that exactly the expected objects are lent, each with its Machine and its provider objects.
    pub(super) async fn check(&self, namespace: &str, lent: usize) -> anyhow::Result<()> {
        let (mut active, mut inactive) = (BTreeSet::new(), BTreeSet::new());
        for object in self.objects(namespace).await? {
            let name = object.metadata.name.unwrap_or_default();
            match object.status.and_then(|status| status.phase) {
                Some(Phase::Active) => active.insert(name),
                Some(Phase::Inactive) => inactive.insert(name),
                other => anyhow::bail!("{name} is {other:?}"),
            };
        }
        let unexpected = if active.len() > lent { active.first() } else { inactive.first() };
        ensure!(
            active.len() == lent,
            "{} objects are Active, not {lent}: {} is among the wrong ones",
            active.len(),
            unexpected.map_or("none", String::as_str)
        );
        for (group, kind) in [
            ("cluster.x-k8s.io", "Machine"),
            ("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig"),
            ("infrastructure.cluster.x-k8s.io", "RemoteMachine"),
        ] {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
            let api = Api::namespaced_with(self.admin(), namespace, &resource);
            let count = count(api.clone()).await?;
            if count != lent {
                let wrong = difference(&api, &active).await?;
                anyhow::bail!("there are {count} {kind}s for {lent} objects: {wrong}");
            }
        }
        Ok(())
    }
}

/// Describes objects without a lent machine, or a lent machine without its object.
async fn difference(api: &Api<DynamicObject>, lent: &BTreeSet<String>) -> anyhow::Result<String> {
    let found = api.list_metadata(&ListParams::default()).await?;
    let owners: BTreeSet<String> = found
        .iter()
        .filter_map(|object| objects::number(object.metadata.name.as_deref()?))
        .map(objects::name)
        .collect();
    let missing = lent.difference(&owners).next().map(|name| format!("{name} has none"));
    let superfluous = owners.difference(lent).next().map(|name| format!("{name} still has one"));
    Ok(missing.or(superfluous).unwrap_or_else(|| "one has several".to_owned()))
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
    let files = ["rbac/controller.yaml", "rbac/machine-claims.yaml", "rbac-nodes/nodes.yaml", "ha/rbac.yaml"];
    for file in files {
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
