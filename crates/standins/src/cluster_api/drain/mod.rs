//! A drain pass: evicts the pods of the lowest order; the others wait.

mod report;
mod treatment;

pub(super) use report::Report;

use super::super::context::{ActorContext, Eviction};
use super::Facts;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};
use treatment::{Circumstances, Treatment, treatment};

/// The grace period of pods on an unreachable Node, where no kubelet can stop them.
const GRACE_WHEN_UNREACHABLE: u32 = 1;

/// Runs one pass. A report without blocking pods means that the Node is drained.
pub(super) async fn pass(
    context: &mut ActorContext,
    facts: &Facts,
    node: &DynamicObject,
    rules: &[DynamicObject],
    now: Timestamp,
) -> kube::Result<Report> {
    let is_unreachable = super::condition_status(node, "Ready") == "Unknown";
    let on_node = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
    let mut pods = Api::<Pod>::all(context.workload()).list(&on_node).await?.items;
    pods.sort_by_key(name_of);
    let rules: Vec<&DynamicObject> = rules.iter().filter(|rule| treatment::is_for(rule, facts)).collect();
    let circumstances = Circumstances {
        namespaces: if rules.is_empty() { BTreeMap::new() } else { namespaces(&context.workload()).await? },
        rules,
        daemon_sets: daemon_sets(&context.workload(), &pods).await?,
        is_unreachable,
        now,
    };
    let treated: Vec<(Treatment, Pod)> =
        pods.into_iter().map(|pod| (treatment(&pod, &circumstances), pod)).collect();
    let turn = treated.iter().filter_map(|(treatment, _)| treatment.order()).min();
    let grace = is_unreachable.then_some(GRACE_WHEN_UNREACHABLE);
    let mut report = Report::default();
    for (treatment, pod) in treated {
        let is_its_turn = treatment.order() == turn;
        match treatment {
            Treatment::Wait if is_its_turn => report.awaited.push(name_of(&pod)),
            Treatment::Wait => report.awaited_later.push(name_of(&pod)),
            Treatment::Drain(_) if pod.metadata.deletion_timestamp.is_some() => {
                report.going.push(name_of(&pod));
            }
            Treatment::Drain(_) if !is_its_turn => report.evicted_later.push(name_of(&pod)),
            Treatment::Drain(_) => evict(context, &pod, grace, &mut report).await,
            Treatment::Skip => {}
        }
    }
    Ok(report)
}

/// Evicts a pod. Failures of any kind are reported and retried in the next pass.
async fn evict(context: &mut ActorContext, pod: &Pod, grace: Option<u32>, report: &mut Report) {
    let why = match context.evict(pod, grace).await {
        Ok(Eviction::Granted) => return report.going.push(name_of(pod)),
        Ok(Eviction::Gone) => return,
        Ok(Eviction::Refused(why)) => why,
        Err(error) => {
            let why = error.to_string();
            context.note_pod(pod, error);
            why
        }
    };
    report.refused.entry(why).or_default().push(name_of(pod));
}

fn name_of(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

/// The labels of all namespaces, for rules with namespace selectors.
async fn namespaces(client: &Client) -> kube::Result<BTreeMap<String, BTreeMap<String, String>>> {
    let namespaces = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(namespaces.into_iter().map(|one| (one.name_any(), one.metadata.labels.unwrap_or_default())).collect())
}

/// The existing `DaemonSets` that pods have as their controller, by namespace and name.
async fn daemon_sets(client: &Client, pods: &[Pod]) -> kube::Result<BTreeSet<(String, String)>> {
    let named: BTreeSet<(String, String)> = pods
        .iter()
        .filter_map(|pod| Some((pod.namespace().unwrap_or_default(), treatment::daemon_set(pod)?)))
        .collect();
    let mut found = BTreeSet::new();
    for (namespace, name) in named {
        let api: Api<DaemonSet> = Api::namespaced(client.clone(), &namespace);
        if api.get_opt(&name).await?.is_some() {
            found.insert((namespace, name));
        }
    }
    Ok(found)
}
