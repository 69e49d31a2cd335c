//! The ConfigMap of a node's reclaim agent.

use super::Job;
use crate::cache::project;
use crate::transport::error::{CallError, or_absent};
use crate::transport::key::ObjectKey;
use crate::view::render;
use five_spot_api::names::FIELD_MANAGER;
use five_spot_api::reclaim::{CONFIG_NAMESPACE, config_map};
use five_spot_core::world::NodeName;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};

impl Job<'_> {
    pub(super) async fn apply_agent_config(&self, node: &NodeName) -> Result<(), CallError> {
        let (Some(link), Ok(spec)) = (&self.observed.link, &self.observed.spec) else { return Ok(()) };
        let api: Api<ConfigMap> = Api::namespaced(link.client.clone(), CONFIG_NAMESPACE);
        let desired = Patch::Apply(render::agent_config(self.key, node, spec));
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let name = config_map(node.as_str());
        let object = api
            .patch_metadata(&name, &parameters, &desired)
            .await
            .map_err(|error| CallError::new(format!("apply ConfigMap {CONFIG_NAMESPACE}/{name}"), error))?;
        let version = object.resource_version().unwrap_or_default();
        link.agent_configs.put(ObjectKey::of(&object), &version, project::agent_config(&object));
        Ok(())
    }

    pub(super) async fn delete_agent_config(&self, node: &NodeName) -> Result<(), CallError> {
        let Some(link) = &self.observed.link else { return Ok(()) };
        let api: Api<ConfigMap> = Api::namespaced(link.client.clone(), CONFIG_NAMESPACE);
        let name = config_map(node.as_str());
        or_absent(api.delete(&name, &DeleteParams::default()).await)
            .map_err(|error| CallError::new(format!("delete ConfigMap {CONFIG_NAMESPACE}/{name}"), error))?;
        link.agent_configs.remove(&ObjectKey::new(CONFIG_NAMESPACE, name));
        Ok(())
    }
}
