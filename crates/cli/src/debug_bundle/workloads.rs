//! The workload clusters: reclaim agents and Nodes. The Secrets with their kubeconfigs are read to get there, with the permissions of
//! the caller, and never go into the bundle.

use super::agents;
use super::bundle::{Bundle, path_part};
use super::read::{Reader, Selection};
use crate::cluster_access::CallerCluster;
use crate::why::Catalog;
use five_spot_api::names::label;
use five_spot_cluster::transport::workload_kubeconfig;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The most clusters that are asked.
const CLUSTERS: usize = 10;

/// The time for one cluster: one that does not answer must not hold up the bundle.
const CLUSTER_DEADLINE: Duration = Duration::from_mins(1);

/// The most Nodes of a cluster.
const NODES: usize = 500;

/// The kubeconfig of a workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkloadSecret {
    namespace: String,
    name: String,
    key: String,
}

impl WorkloadSecret {
    /// The kubeconfig that the status of a `ScheduledMachine` names.
    pub fn of(object: &Value) -> Option<Self> {
        let recorded = &object["status"]["workloadCluster"];
        Some(Self {
            namespace: object["metadata"]["namespace"].as_str()?.to_owned(),
            name: recorded["secretName"].as_str()?.to_owned(),
            key: recorded["secretKey"].as_str().unwrap_or("value").to_owned(),
        })
    }

    fn in_words(&self) -> String {
        format!("the workload cluster of Secret {}/{}", self.namespace, self.name)
    }
}

/// Collects what is in the workload clusters.
pub async fn collect(
    access: &CallerCluster,
    client: &Client,
    bundle: &mut Bundle,
    secrets: &BTreeSet<WorkloadSecret>,
) {
    if secrets.len() > CLUSTERS {
        bundle
            .miss("further workload clusters", &format!("only {CLUSTERS} of {} were queried", secrets.len()));
    }
    for secret in secrets.iter().take(CLUSTERS) {
        let collected = tokio::time::timeout(CLUSTER_DEADLINE, one(access, client, bundle, secret)).await;
        let failed = match collected {
            Ok(Ok(())) => continue,
            Ok(Err(reason)) => reason,
            Err(_) => format!("no answer within {} s", CLUSTER_DEADLINE.as_secs()),
        };
        bundle.miss(&secret.in_words(), &failed);
    }
}

async fn one(
    access: &CallerCluster,
    client: &Client,
    bundle: &mut Bundle,
    secret: &WorkloadSecret,
) -> Result<(), String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &secret.namespace);
    let found = secrets.get(&secret.name).await.map_err(|error| super::read::in_words(&error))?;
    let kubeconfig = workload_kubeconfig(&found, &secret.key)?;
    let client = access
        .connection
        .workload(kubeconfig, &secret.in_words())
        .await
        .map_err(|error| error.to_string())?;
    let catalog = Catalog::discover(&client).await.map_err(|error| super::read::in_words(&error))?;
    let reader = Reader { client, catalog: &catalog };
    let folder = format!("workload/{}/{}", path_part(&secret.namespace), path_part(&secret.name));
    agents::collect(&reader, bundle, &format!("{folder}/")).await;
    let with_agent = Selection { labels: Some(label::RECLAIM_AGENT), limit: NODES, namespace: None };
    let nodes = reader.list(bundle, "", "nodes", with_agent).await;
    bundle.add_objects(&format!("{folder}/nodes.yaml"), "the Nodes with a reclaim agent", &nodes);
    Ok(())
}
