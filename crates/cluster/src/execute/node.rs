//! The Node, in its own cluster.

use super::Job;
use crate::error::{CallError, or_absent};
use crate::observe::node_key;
use crate::project;
use five_spot_api::names::{FIELD_MANAGER, annotation, label};
use five_spot_api::{NodeTaint, TaintEffect, reclaim};
use five_spot_core::action::NodeRef;
use five_spot_core::world::{ResourceVersion, TaintId};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

impl Job<'_> {
    /// Cordons the node and marks it as ours to uncordon, unless someone has touched it since we looked: whoever
    /// cordoned it first decides when it is uncordoned.
    pub(super) async fn cordon(&self, node: &NodeRef) -> Result<(), CallError> {
        let patch = json!({
            "metadata": {
                "resourceVersion": self.node_version(),
                "annotations": {annotation::CORDONED_BY: self.uid()},
            },
            "spec": {"unschedulable": true},
        });
        self.patch_node("cordon", node, patch).await
    }

    pub(super) async fn uncordon(&self, node: &NodeRef) -> Result<(), CallError> {
        let patch = json!({
            "metadata": {
                "resourceVersion": self.node_version(),
                "annotations": {annotation::CORDONED_BY: null},
            },
            "spec": {"unschedulable": null},
        });
        self.patch_node("uncordon", node, patch).await
    }

    /// Writes our taints into the list as it is, whole: it cannot be patched in part. What others have put there stays
    /// as it is, to the last field.
    pub(super) async fn patch_taints(
        &self,
        node: &NodeRef,
        version: &ResourceVersion,
        taints: &[NodeTaint],
        owned: &[TaintId],
    ) -> Result<(), CallError> {
        let Some(api) = self.nodes() else { return Ok(()) };
        let found = or_absent(api.get(node.name.as_str()).await)
            .map_err(|error| CallError::new(format!("get Node {}", node.name), error))?;
        let Some(current) = found else { return Ok(()) };
        let listed = current.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let record: Vec<Value> =
            owned.iter().map(|id| json!({"effect": id.effect.as_str(), "key": id.key})).collect();
        let record = if record.is_empty() { Value::Null } else { Value::from(record).to_string().into() };
        let patch = json!({
            "metadata": {
                "resourceVersion": version.as_str(),
                "annotations": {annotation::APPLIED_TAINTS: record},
            },
            "spec": {"taints": merge(listed, taints)},
        });
        self.patch_node("taint", node, patch).await
    }

    pub(super) async fn label_for_agent(&self, node: &NodeRef, wanted: bool) -> Result<(), CallError> {
        let value = if wanted { Value::from(label::RECLAIM_AGENT_ENABLED) } else { Value::Null };
        let patch = json!({"metadata": {"uid": node.uid.as_str(), "labels": {label::RECLAIM_AGENT: value}}});
        self.patch_node("label", node, patch).await
    }

    pub(super) async fn clear_reclaim_request(&self, node: &NodeRef) -> Result<(), CallError> {
        let patch = json!({"metadata": {"uid": node.uid.as_str(), "annotations": {
            reclaim::REQUESTED: null, reclaim::REASON: null, reclaim::REQUESTED_AT: null,
        }}});
        self.patch_node("clear the reclaim request of", node, patch).await
    }

    async fn patch_node(&self, verb: &str, node: &NodeRef, patch: Value) -> Result<(), CallError> {
        let (Some(api), Some(link)) = (self.nodes(), &self.observed.link) else { return Ok(()) };
        let answer =
            api.patch(node.name.as_str(), &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await;
        let answered =
            or_absent(answer).map_err(|error| CallError::new(format!("{verb} Node {}", node.name), error))?;
        match answered {
            Some(object) => {
                let version = object.resource_version().unwrap_or_default();
                link.nodes.put(node_key(&node.name), &version, project::node(&object));
            }
            None => {
                link.nodes.remove(&node_key(&node.name));
            }
        }
        Ok(())
    }

    fn nodes(&self) -> Option<Api<Node>> {
        self.observed.link.as_ref().map(|link| Api::all(link.client.clone()))
    }

    /// The version of the Node that was decided upon.
    fn node_version(&self) -> Option<&str> {
        self.observed.world.node.found().map(|node| node.resource_version.as_str())
    }
}

/// The list of taints with what was decided in place of what this program understands, each in its place, and the
/// rest left as it is.
fn merge(listed: Vec<Taint>, decided: &[NodeTaint]) -> Vec<Taint> {
    let is =
        |taint: &Taint, wanted: &NodeTaint| taint.key == wanted.key && taint.effect == wanted.effect.as_str();
    let known = |taint: &Taint| TaintEffect::ALL.iter().any(|effect| effect.as_str() == taint.effect);
    let mut merged = Vec::new();
    for taint in listed {
        match decided.iter().find(|wanted| is(&taint, wanted)) {
            Some(wanted) if wanted.value == taint.value => merged.push(taint),
            Some(wanted) => merged.push(Taint { value: wanted.value.clone(), ..taint }),
            None if known(&taint) => {}
            None => merged.push(taint),
        }
    }
    for wanted in decided {
        if !merged.iter().any(|taint| is(taint, wanted)) {
            merged.push(Taint {
                key: wanted.key.clone(),
                value: wanted.value.clone(),
                effect: wanted.effect.as_str().to_owned(),
                time_added: None,
            });
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn taint(key: &str, effect: &str) -> Taint {
        Taint {
            key: key.into(),
            effect: effect.into(),
            value: None,
            time_added: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
        }
    }

    fn wanted(key: &str, value: Option<&str>) -> NodeTaint {
        NodeTaint { key: key.into(), value: value.map(str::to_owned), effect: TaintEffect::NoExecute }
    }

    #[test]
    fn what_others_wrote_stays_to_the_last_field() {
        let theirs = taint("theirs", "NoExecute");
        let strange = taint("strange", "Unheard");
        let listed = vec![theirs.clone(), taint("ours-before", "NoExecute"), strange.clone()];
        let merged = merge(listed, &[wanted("theirs", None), wanted("ours", Some("1"))]);
        assert_eq!(merged[..2], [theirs, strange]);
        assert_eq!(
            (merged[2].key.as_str(), merged[2].value.as_deref(), merged.len()),
            ("ours", Some("1"), 3)
        );
    }
}
