//! What has to be looked up, once for a drain, before the pods of a node can be judged.

use crate::cache::drain_rules::{DrainRules, Labels};
use crate::cache::fleet::{Fleet, Inner};
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::kinds::capi_resource;
use crate::view::observe::Observed;
use crate::view::render::CapiVersion;
use five_spot_api::names;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use std::sync::Arc;

impl Fleet {
    /// Looks up what an observation has shown to be unknown.
    pub async fn look_up(&self, key: &ObjectKey, observed: &Observed) -> Result<(), CallError> {
        let (Some(link), lookups) = (&observed.link, &observed.lookups) else { return Ok(()) };
        if lookups.rules {
            let rules = Arc::new(self.inner.drain_rules(key, observed).await?);
            self.inner.remember(key, |memory| memory.drain_rules = Some(rules));
        }
        for daemon_set in &lookups.daemon_sets {
            let api: Api<DaemonSet> = Api::namespaced(link.client.clone(), &daemon_set.namespace);
            let found = or_absent(api.get_metadata(&daemon_set.name).await)
                .map_err(|error| CallError::new(format!("get DaemonSet {daemon_set}"), error))?;
            link.remember_daemon_set(daemon_set.clone(), found.is_some());
        }
        for name in &lookups.namespaces {
            let api: Api<Namespace> = Api::all(link.client.clone());
            let found = or_absent(api.get_metadata(name).await)
                .map_err(|error| CallError::new(format!("get Namespace {name}"), error))?;
            let labels = found.map(|namespace| namespace.labels().clone()).unwrap_or_default();
            link.remember_namespace_labels(name.clone(), labels);
        }
        Ok(())
    }
}

impl Inner {
    /// The rules that apply to the object's Machine. A Cluster API without such rules has none.
    async fn drain_rules(&self, key: &ObjectKey, observed: &Observed) -> Result<DrainRules, CallError> {
        let Some(version) = self.capi() else { return Ok(DrainRules::default()) };
        let api = self.api(&key.namespace, &capi_resource(version, "MachineDrainRule", "machinedrainrules"));
        let rules = match api.list(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(_) if self.kinds.lacks(&version.api_version(), "MachineDrainRule").await => Vec::new(),
            Err(error) => {
                let call = format!("CAPI operation failed: list the drain rules of {}", key.namespace);
                return Err(CallError::new(call, error));
            }
        };
        if rules.is_empty() {
            return Ok(DrainRules::default());
        }
        let machine = self.labels(version, "Machine", &key.beside(names::machine(&key.name))).await?;
        let cluster = match &observed.spec {
            Ok(spec) => self.labels(version, "Cluster", &key.beside(spec.cluster_name.clone())).await?,
            Err(_) => Labels::new(),
        };
        Ok(DrainRules::of(&rules, &machine, &cluster))
    }

    async fn labels(&self, version: CapiVersion, kind: &str, key: &ObjectKey) -> Result<Labels, CallError> {
        let plural = if kind == "Machine" { "machines" } else { "clusters" };
        let api = self.api(&key.namespace, &capi_resource(version, kind, plural));
        let found = or_absent(api.get_metadata(&key.name).await)
            .map_err(|error| CallError::new(format!("CAPI operation failed: get {kind} {key}"), error))?;
        Ok(found.map(|object| object.labels().clone()).unwrap_or_default())
    }
}
