//! The ConfigMap of a node's reclaim agent.

use crate::cache::project;
use crate::cache::workload::WorkloadLink;
use crate::execute::job::Job;
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason};
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::render;
use five_spot_api::names::{FIELD_MANAGER, annotation};
use five_spot_api::reclaim::{CONFIG_NAMESPACE, config_map};
use five_spot_core::action::NodeRef;
use five_spot_core::world::NodeName;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PartialObjectMeta, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

impl Job<'_> {
    pub(super) async fn apply_agent_config(&self, link: &WorkloadLink, node: &NodeRef) -> Acted {
        let Ok(spec) = &self.observed.spec else { return Err(SkipReason::InvalidSpec.into()) };
        let desired = Patch::Apply(render::agent_config(self.key, node, spec));
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let key = config_key(&node.name);
        let object =
            configs(link).patch_metadata(&key.name, &parameters, &desired).await.map_err(|error| {
                CallError::new(Operation::new(Verb::Apply, TargetKind::ConfigMap, key), error)
            })?;
        keep(link, &object);
        Ok(ActionOutcome::Done)
    }

    pub(super) async fn rearm_agent(&self, link: &WorkloadLink, node: &NodeRef) -> Acted {
        let annotations = json!({annotation::AGENT_NODE_UID: node.uid.as_str()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let key = config_key(&node.name);
        let answered = configs(link).patch_metadata(&key.name, &PatchParams::default(), &patch).await;
        let object = or_absent(answered).map_err(|error| {
            CallError::new(Operation::new(Verb::Annotate, TargetKind::ConfigMap, key.clone()), error)
        })?;
        match &object {
            Some(object) => keep(link, object),
            // Deleted by hand: the next decision makes another one.
            None => link.agent_configs.remove(&key),
        }
        Ok(ActionOutcome::Done)
    }

    pub(super) async fn delete_agent_config(&self, link: &WorkloadLink, node: &NodeName) -> Acted {
        let key = config_key(node);
        or_absent(configs(link).delete(&key.name, &DeleteParams::default()).await).map_err(|error| {
            CallError::new(Operation::new(Verb::Delete, TargetKind::ConfigMap, key.clone()), error)
        })?;
        link.agent_configs.remove(&key);
        Ok(ActionOutcome::Done)
    }
}

fn keep(link: &WorkloadLink, object: &PartialObjectMeta<ConfigMap>) {
    let version = object.resource_version().unwrap_or_default();
    link.agent_configs.put(ObjectKey::of(object), &version, project::agent_config(object));
}

fn configs(link: &WorkloadLink) -> Api<ConfigMap> {
    Api::namespaced(link.client.clone(), CONFIG_NAMESPACE)
}

fn config_key(node: &NodeName) -> ObjectKey {
    ObjectKey::new(CONFIG_NAMESPACE, config_map(node.as_str()))
}
