//! The Node, in its own cluster.

use crate::cache::project;
use crate::cache::workload::{WorkloadLink, node_key};
use crate::execute::job::Job;
use crate::execute::outcome::{Acted, ActionOutcome, SkipReason, Unfinished};
use crate::transport::core_kinds::Node;
use crate::transport::error::{CallError, or_absent};
use crate::transport::operation::{Operation, TargetKind, Verb};
use five_spot_api::names::{FIELD_MANAGER, annotation, label};
use five_spot_api::{NodeTaint, TaintEffect, reclaim};
use five_spot_core::action::NodeRef;
use five_spot_core::world::{ResourceVersion, TaintId};
use k8s_openapi::api::core::v1::Taint;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// The most attempts at a Node that others write at the same time. The node lifecycle controller, kubelets and
/// autoscalers all write it with the version that they read; one of them is always first.
const CONTENTIONS: u32 = 16;

impl Job<'_> {
    /// Cordons the node and marks it as ours to uncordon, unless someone has cordoned it since it was read: whoever
    /// cordoned it first decides when it is uncordoned.
    pub(super) async fn cordon(&self, link: &WorkloadLink, node: &NodeRef) -> Acted {
        let patch = json!({
            "metadata": {"annotations": {annotation::CORDONED_BY: self.key.to_string()}},
            "spec": {"unschedulable": true},
        });
        self.change_cordon(link, Verb::Cordon, node, patch).await
    }

    pub(super) async fn uncordon(&self, link: &WorkloadLink, node: &NodeRef) -> Acted {
        let patch = json!({
            "metadata": {"annotations": {annotation::CORDONED_BY: null}},
            "spec": {"unschedulable": null},
        });
        self.change_cordon(link, Verb::Uncordon, node, patch).await
    }

    async fn change_cordon(&self, link: &WorkloadLink, verb: Verb, node: &NodeRef, patch: Value) -> Acted {
        let mut first = patch.clone();
        first["metadata"]["resourceVersion"] = self.node_version().into();
        match self.patch_node(link, verb, node, first).await {
            Err(Unfinished::Failed(error)) if error.is_stale() => {}
            answered => return answered,
        }
        let object = self.key.to_string();
        self.change_node(link, verb, node, |current| {
            let (now, decided) = (project::node(current), self.observed.world.node.found()?);
            let by_us = now.cordoned_by.as_ref() == Some(&object);
            let same = now.unschedulable == decided.unschedulable && by_us == decided.cordoned_by_us;
            same.then(|| patch.clone())
        })
        .await
    }

    /// Writes our taints into the list of taints, which can only be written as a whole. The taints of others stay as they
    /// are, to the last field.
    pub(super) async fn patch_taints(
        &self,
        link: &WorkloadLink,
        node: &NodeRef,
        version: &ResourceVersion,
        (taints, owned): (&[NodeTaint], &[TaintId]),
    ) -> Acted {
        let record: Vec<Value> =
            owned.iter().map(|id| json!({"effect": id.effect.as_str(), "key": id.key})).collect();
        let record = if record.is_empty() { Value::Null } else { Value::from(record).to_string().into() };
        self.change_node(link, Verb::Taint, node, |current| {
            let decided = self.observed.world.node.found()?;
            let change = TaintChange::new(&decided.taints, taints, owned);
            let now = project::node(current);
            let same = now.owned_taints == decided.owned_taints
                && change.concerns(&now.taints).eq(change.concerns(&decided.taints));
            if current.resource_version().as_deref() != Some(version.as_str()) && !same {
                return None;
            }
            let listed = current.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
            Some(json!({
                "metadata": {"annotations": {annotation::APPLIED_TAINTS: record}},
                "spec": {"taints": change.applied_to(listed)},
            }))
        })
        .await
    }

    pub(super) async fn label_for_agent(&self, link: &WorkloadLink, node: &NodeRef, wanted: bool) -> Acted {
        let value = if wanted { Value::from(label::RECLAIM_AGENT_ENABLED) } else { Value::Null };
        let patch = json!({"metadata": {"uid": node.uid.as_str(), "labels": {label::RECLAIM_AGENT: value}}});
        self.patch_node(link, Verb::Label, node, patch).await
    }

    pub(super) async fn clear_reclaim_request(&self, link: &WorkloadLink, node: &NodeRef) -> Acted {
        let patch = json!({"metadata": {"uid": node.uid.as_str(), "annotations": {
            reclaim::REQUESTED: null, reclaim::REASON: null, reclaim::REQUESTED_AT: null,
        }}});
        self.patch_node(link, Verb::ClearReclaimRequest, node, patch).await
    }

    /// Changes the Node as it is now, and retries if others write it at the same time. `patch` returns the change, or
    /// `None` if the Node is not any more as the decision saw it.
    async fn change_node(
        &self,
        link: &WorkloadLink,
        verb: Verb,
        node: &NodeRef,
        patch: impl Fn(&Node) -> Option<Value>,
    ) -> Acted {
        let api: Api<Node> = Api::all(link.client.clone());
        let mut attempt = 1;
        loop {
            let found = or_absent(api.get(node.name.as_str()).await)
                .map_err(|error| CallError::new(on_node(Verb::Get, node), error))?;
            // The watch reports that the Node is gone: an answer without an object has no version that tells its age.
            let current = found.ok_or(SkipReason::ObjectGone)?;
            let same = current.uid().as_deref() == Some(node.uid.as_str());
            let Some(mut patch) = patch(&current).filter(|_| same) else {
                return Err(CallError::new(on_node(verb, node), changed()).into());
            };
            patch["metadata"]["resourceVersion"] = current.resource_version().into();
            match self.patch_node(link, verb, node, patch).await {
                Err(Unfinished::Failed(error)) if error.is_stale() && attempt < CONTENTIONS => attempt += 1,
                answered => return answered,
            }
        }
    }

    async fn patch_node(&self, link: &WorkloadLink, verb: Verb, node: &NodeRef, patch: Value) -> Acted {
        let api: Api<Node> = Api::all(link.client.clone());
        let answer =
            api.patch(node.name.as_str(), &PatchParams::apply(FIELD_MANAGER), &Patch::Merge(patch)).await;
        let answered = or_absent(answer).map_err(|error| CallError::new(on_node(verb, node), error))?;
        let Some(object) = answered else {
            link.nodes.remove(&node_key(&node.name));
            return Err(SkipReason::ObjectGone.into());
        };
        let version = object.resource_version().unwrap_or_default();
        link.nodes.put(node_key(&node.name), &version, project::node(&object));
        Ok(ActionOutcome::Done)
    }

    /// The version of the Node that was decided on.
    fn node_version(&self) -> Option<&str> {
        self.observed.world.node.found().map(|node| node.resource_version.as_str())
    }
}

fn on_node(verb: Verb, node: &NodeRef) -> Operation {
    Operation::new(verb, TargetKind::Node, node_key(&node.name))
}

/// The conflict that a server would report if it could compare the Node with the one that was decided on.
fn changed() -> kube::Error {
    let message = "the Node has changed since it was read";
    kube::Error::Api(Status::failure(message, "Conflict").with_code(409).boxed())
}

/// A change of our taints, which leaves those of others alone.
struct TaintChange<'a> {
    ours: Vec<&'a NodeTaint>,
    removed: Vec<TaintId>,
}

impl<'a> TaintChange<'a> {
    /// The change from the list `before` to the list `after`, in which `owned` are ours.
    fn new(before: &[NodeTaint], after: &'a [NodeTaint], owned: &[TaintId]) -> Self {
        let stays = |id: &TaintId| after.iter().any(|taint| TaintId::from(taint) == *id);
        Self {
            ours: after.iter().filter(|taint| owned.contains(&TaintId::from(*taint))).collect(),
            removed: before.iter().map(TaintId::from).filter(|id| !stays(id)).collect(),
        }
    }

    /// The taints of a list that the change is about.
    fn concerns<'b>(&self, list: &'b [NodeTaint]) -> impl Iterator<Item = &'b NodeTaint> {
        list.iter().filter(|taint| {
            let id = TaintId::from(*taint);
            self.removed.contains(&id) || self.ours.iter().any(|ours| TaintId::from(*ours) == id)
        })
    }

    /// The list with our taints changed, and everything else as it is.
    fn applied_to(&self, listed: Vec<Taint>) -> Vec<Taint> {
        let is = |taint: &Taint, key: &str, effect: TaintEffect| {
            taint.key == key && taint.effect == effect.as_str()
        };
        let mut list = Vec::new();
        for taint in listed {
            if let Some(ours) = self.ours.iter().find(|ours| is(&taint, &ours.key, ours.effect)) {
                let same = ours.value == taint.value;
                list.push(if same { taint } else { Taint { value: ours.value.clone(), ..taint } });
            } else if !self.removed.iter().any(|id| is(&taint, &id.key, id.effect)) {
                list.push(taint);
            }
        }
        for ours in &self.ours {
            if !list.iter().any(|taint| is(taint, &ours.key, ours.effect)) {
                list.push(Taint {
                    key: ours.key.clone(),
                    value: ours.value.clone(),
                    effect: ours.effect.as_str().to_owned(),
                    time_added: None,
                });
            }
        }
        list
    }
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
        let latest = taint("latest", "NoExecute");
        let before = [wanted("theirs", None), wanted("ours-before", None)];
        let after = [wanted("theirs", None), wanted("ours", Some("1"))];
        let change = TaintChange::new(&before, &after, &[TaintId::from(&after[1])]);
        // Someone has added one since the list was looked at.
        let listed = vec![theirs.clone(), taint("ours-before", "NoExecute"), strange.clone(), latest.clone()];
        let list = change.applied_to(listed);
        assert_eq!(list[..3], [theirs, strange, latest]);
        assert_eq!((list[3].key.as_str(), list[3].value.as_deref(), list.len()), ("ours", Some("1"), 4));
    }

    #[test]
    fn a_change_is_about_ours_alone() {
        let before = [wanted("theirs", None), wanted("ours-before", None)];
        let after = [wanted("theirs", None), wanted("ours", Some("1"))];
        let change = TaintChange::new(&before, &after, &[TaintId::from(&after[1])]);
        let list = [wanted("new", None), wanted("ours-before", None), wanted("ours", Some("2"))];
        assert!(change.concerns(&list).eq(&list[1..]));
    }
}
