//! The owner of a lent machine, who starts a program on it. The sandbox has no processes, so no kernel events
//! are involved; configuration, matcher and patch are those of the real reclaim agent.

use crate::sandbox::trace::Key;
use anyhow::Context as _;
use five_spot_agent::annotate::{self, OwnNode};
use five_spot_agent::matcher::{Comm, Matcher, ProcessFacts};
use five_spot_api::names;
use five_spot_api::reclaim::{AgentConfig, CONFIG_KEY, CONFIG_NAMESPACE, config_map};
use five_spot_standins::{machine_id, node_name};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use std::ops::ControlFlow;

/// Starts a program on a machine. If the agent of its Node is configured to match it, the agent requests a
/// reclaim.
pub async fn start_program(client: &Client, key: &Key, program: &str, now: Timestamp) -> anyhow::Result<()> {
    let name = node_name(&key.namespace, &names::infrastructure(&key.name));
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), CONFIG_NAMESPACE);
    let nodes: Api<Node> = Api::all(client.clone());
    let (config, node) = (configs.get_opt(&config_map(&name)).await?, nodes.get_opt(&name).await?);
    // Without a Node and a configuration there is no agent, and nothing happens.
    let (Some(config), Some(node)) = (config, node) else { return Ok(()) };
    let text = config.data.and_then(|mut data| data.remove(CONFIG_KEY)).unwrap_or_default();
    let Ok(parsed) = AgentConfig::parse(&text) else { return Ok(()) };
    let matcher = Matcher::new(&parsed.config);
    let Some(hit) = matcher.check(&mut Program(program)) else { return Ok(()) };
    let own = OwnNode { machine_id: Some(machine_id(&node.uid().unwrap_or_default())), name };
    annotate_node(client, &own, hit.pattern, now).await
}

async fn annotate_node(client: &Client, node: &OwnNode, pattern: &str, now: Timestamp) -> anyhow::Result<()> {
    let request = annotate::request_for(pattern, now);
    // The agent does the same: the second patch is for a Node without annotations.
    if send(client, node, &annotate::patch(node, &request, true)).await.is_ok() {
        return Ok(());
    }
    let annotated = send(client, node, &annotate::patch(node, &request, false)).await;
    annotated.with_context(|| format!("failed to annotate node {}", node.name))
}

async fn send(client: &Client, node: &OwnNode, patch: &Value) -> anyhow::Result<()> {
    let request = Request::patch(format!("/api/v1/nodes/{}", node.name))
        .header("content-type", "application/json-patch+json")
        .body(serde_json::to_vec(patch)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// A process of the owner, on the host and in no pod.
struct Program<'a>(&'a str);

impl ProcessFacts for Program<'_> {
    fn comm(&mut self) -> Option<Comm> {
        Some(Comm::new(self.0.as_bytes()))
    }

    fn is_excluded(&mut self) -> Option<bool> {
        Some(false)
    }

    fn is_in_pod(&mut self) -> Option<bool> {
        Some(false)
    }

    fn is_started_by_node(&mut self) -> Option<bool> {
        Some(false)
    }

    fn uid(&mut self) -> Option<u32> {
        Some(1000)
    }

    fn visit_command_line(
        &mut self,
        _: usize,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<()> {
        let _ = visit(&[self.0.as_bytes(), b"\0"].concat());
        Some(())
    }

    fn executable_name(&mut self) -> Option<Vec<u8>> {
        Some(self.0.as_bytes().to_vec())
    }
}
