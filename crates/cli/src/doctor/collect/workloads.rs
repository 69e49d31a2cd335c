//! The workload clusters: Nodes, agents, disruption budgets and the pods of nodes that are being drained. A cluster is asked
//! only if a machine needs it.

use super::reader::{Notes, Reader, Unread};
use super::{in_new_words, name};
use crate::cluster_access::{CallerCluster, object_name};
use five_spot_api::{Phase, names};
use five_spot_cluster::transport::workload_kubeconfig;
use five_spot_diagnose::doctor::{AgentPod, LogLine, MachineFacts, WorkloadFacts, WorkloadKey};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most clusters that are asked: each costs a connection and a handful of requests.
const CLUSTERS: usize = 20;

/// The most nodes whose pods are listed.
const DRAINED_NODES: usize = 10;

/// The time for the log of an agent: it is short, and the doctor as a whole should take less than five
/// seconds.
const LOG_ANSWER: Duration = Duration::from_secs(1);

/// The most agents whose logs are read. Those that are not ready come first.
const AGENT_LOGS: usize = 5;

const SYSTEM: &str = names::SYSTEM_NAMESPACE;

/// The facts by which the machines of a cluster are judged.
#[derive(Default)]
struct Needs {
    nodes: BTreeSet<String>,
    drained: BTreeSet<String>,
    agents: bool,
    secret_key: String,
}

pub(super) async fn collect(
    reader: &Reader<'_>,
    access: &CallerCluster,
    machines: &[MachineFacts],
    notes: &Notes,
) -> BTreeMap<WorkloadKey, WorkloadFacts> {
    let mut needs: BTreeMap<WorkloadKey, Needs> = BTreeMap::new();
    for machine in machines {
        note_needs(machine, &mut needs);
    }
    if needs.len() > CLUSTERS {
        notes.add(format!(
            "{} of {} workload clusters: ask for one namespace",
            needs.len() - CLUSTERS,
            needs.len()
        ));
    }
    let read = needs.into_iter().take(CLUSTERS).map(|(key, needs)| async move {
        let client = client_of(reader, access, &key, &needs, notes).await?;
        let workload = read(&Reader::workload(client, describe(&key), notes), &needs).await;
        Some((key, workload))
    });
    join_all(read).await.into_iter().flatten().collect()
}

fn describe(key: &WorkloadKey) -> String {
    match &key.secret {
        Some(secret) => format!("the workload cluster of Secret {}/{secret}", key.namespace),
        None => "the management cluster".to_owned(),
    }
}

/// A machine that is well and has no agent needs nothing of its cluster.
fn note_needs(machine: &MachineFacts, needs: &mut BTreeMap<WorkloadKey, Needs>) {
    let status = &machine.status;
    // It becomes part of the path of a request.
    let named = status.node_ref.as_ref().filter(|node| object_name(&node.name).is_ok());
    let Some(node) = named.map(|node| node.name.clone()) else { return };
    let condition = |kind: &str| status.conditions.iter().find(|condition| condition.type_ == kind);
    let has_agent = !machine.commands().is_empty();
    let taints = condition("NodeTainted").is_some_and(|tainted| tainted.status != "True");
    let reclaims = status.reclaims.iter().any(|record| record.finished_at.is_none());
    let drains = matches!(status.phase, Some(Phase::ShuttingDown))
        || condition("Ready").is_some_and(|ready| ready.reason == "DrainTimedOut");
    if !(has_agent || taints || reclaims || drains) {
        return;
    }
    let recorded = status.workload_cluster.as_ref().and_then(|cluster| cluster.secret_key.clone());
    let of_cluster = needs.entry(machine.workload()).or_default();
    of_cluster.agents |= has_agent;
    of_cluster.secret_key = recorded.unwrap_or_else(|| "value".to_owned());
    if drains || reclaims {
        of_cluster.drained.insert(node.clone());
    }
    of_cluster.nodes.insert(node);
}

async fn client_of(
    reader: &Reader<'_>,
    access: &CallerCluster,
    key: &WorkloadKey,
    needs: &Needs,
    notes: &Notes,
) -> Option<Client> {
    let Some(secret) = &key.secret else { return Some(reader.client().clone()) };
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", key.namespace);
    let what =
        format!("Secret {}/{secret}, which leads to the Nodes and agents of its cluster", key.namespace);
    let secret: Secret = match reader.get(&path, &what).await {
        Ok(secret) => secret,
        Err(Unread::Absent | Unread::Noted) => return None,
    };
    let kubeconfig = match workload_kubeconfig(&secret, &needs.secret_key) {
        Ok(kubeconfig) => kubeconfig,
        Err(problem) => {
            notes.add(format!("{}: its kubeconfig {problem}", describe(key)));
            return None;
        }
    };
    match access.connection.workload(kubeconfig, &describe(key)).await {
        Ok(client) => Some(client),
        Err(error) => {
            notes.add(format!("{}: {error}", describe(key)));
            None
        }
    }
}

async fn read(reader: &Reader<'_>, needs: &Needs) -> WorkloadFacts {
    let system = format!("/api/v1/namespaces/{SYSTEM}");
    let (nodes, agents, budgets, pods) = tokio::join!(
        nodes(reader, needs),
        agents(reader, needs, &system),
        budgets(reader, needs),
        pods(reader, needs)
    );
    WorkloadFacts { nodes, budgets, pods, ..agents }
}

/// Few Nodes are read one by one, many by a list.
async fn nodes(reader: &Reader<'_>, needs: &Needs) -> Option<BTreeMap<String, Value>> {
    if needs.nodes.len() <= 3 {
        let mut nodes = BTreeMap::new();
        for node in &needs.nodes {
            match reader.get::<Value>(&format!("/api/v1/nodes/{node}"), "Nodes").await {
                Ok(object) => drop(nodes.insert(node.clone(), object)),
                Err(Unread::Absent) => {}
                Err(Unread::Noted) => return None,
            }
        }
        return Some(nodes);
    }
    let all = reader.list_or_none("/api/v1/nodes", "Nodes").await?;
    let ours = all.into_iter().filter(|node| needs.nodes.contains(name(node)));
    Some(ours.map(|node| (name(&node).to_owned(), node)).collect())
}

async fn agents(reader: &Reader<'_>, needs: &Needs, system: &str) -> WorkloadFacts {
    if !needs.agents {
        return WorkloadFacts::default();
    }
    let label = "labelSelector=app%3D5spot-reclaim-agent";
    let sets_path = format!("/apis/apps/v1/namespaces/{SYSTEM}/daemonsets?{label}");
    let events_path = format!("{system}/events?fieldSelector=involvedObject.kind%3DDaemonSet");
    let (pods_path, maps_path) = (format!("{system}/pods?{label}"), format!("{system}/configmaps"));
    let (pods, maps, daemon_sets, namespace, events) = tokio::join!(
        reader.list_or_none(&pods_path, "Pods of the reclaim agent"),
        reader.list_or_none(&maps_path, "ConfigMaps of the reclaim agent"),
        reader.list_or_none(&sets_path, "DaemonSets of the reclaim agent"),
        reader.get::<Value>(system, "Namespace 5spot-system"),
        reader.list_or_none(&events_path, "events of the reclaim agent"),
    );
    let by_name = |map: Value| (name(&map).to_owned(), map);
    WorkloadFacts {
        agents: match pods {
            Some(pods) => Some(with_logs(reader, pods, system).await),
            None => None,
        },
        agent_configs: maps.map(|maps| maps.into_iter().map(by_name).collect()),
        daemon_sets,
        agent_namespace: match namespace {
            Ok(namespace) => Some(namespace),
            Err(Unread::Absent) => Some(Value::Null),
            Err(Unread::Noted) => None,
        },
        agent_events: events.unwrap_or_default().into_iter().map(in_new_words).collect(),
        ..WorkloadFacts::default()
    }
}

async fn with_logs(reader: &Reader<'_>, pods: Vec<Value>, system: &str) -> Vec<AgentPod> {
    let is_ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.clone().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let mut pods: Vec<(bool, Value)> = pods.into_iter().map(|pod| (is_ready(&pod), pod)).collect();
    pods.sort_by_key(|(ready, _)| *ready);
    let read = pods.into_iter().enumerate().map(|(index, (_, pod))| async move {
        if index >= AGENT_LOGS {
            return AgentPod { pod, log: Vec::new() };
        }
        let path = format!("{system}/pods/{}/log?tailLines=200&limitBytes=200000", name(&pod));
        let log = reader.plain(&path, &format!("the log of pod {SYSTEM}/{}", name(&pod)), LOG_ANSWER).await;
        let log = log.filter(|log| log.status.is_success()).map(|log| LogLine::parse(&log.body));
        AgentPod { log: log.unwrap_or_default(), pod }
    });
    join_all(read).await
}

async fn budgets(reader: &Reader<'_>, needs: &Needs) -> Vec<Value> {
    if needs.drained.is_empty() {
        return Vec::new();
    }
    let path = "/apis/policy/v1/poddisruptionbudgets";
    reader.list_or_none(path, "PodDisruptionBudgets").await.unwrap_or_default()
}

async fn pods(reader: &Reader<'_>, needs: &Needs) -> BTreeMap<String, Vec<Value>> {
    let read = needs.drained.iter().take(DRAINED_NODES).map(|node| async move {
        let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}");
        Some((node.clone(), reader.list_or_none(&path, "Pods").await?))
    });
    join_all(read).await.into_iter().flatten().collect()
}
