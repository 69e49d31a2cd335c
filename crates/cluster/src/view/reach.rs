//! The choice of the cluster in which the Node of an object lives, and the link to it.

use crate::cache::caches::Caches;
use crate::cache::links::{self, LinkError};
use crate::cache::project::ObjectFacts;
use crate::cache::references::{WorkloadKey, default_secret, secret_of};
use crate::cache::secrets;
use crate::cache::store::SyncState;
use crate::cache::workload::WorkloadLink;
use crate::transport::error::{ReadFailure, ReadFailureKind};
use crate::transport::key::ObjectKey;
use crate::transport::kubeconfig::SecretFacts;
use five_spot_api::WorkloadCluster;
use five_spot_core::ValidSpec;
use five_spot_core::world::{Workload, WorkloadProblem};
use std::sync::Arc;

/// A cluster, and the link to it if it can be used.
pub(super) struct Reach {
    pub(super) workload: Workload,
    pub(super) link: Option<Arc<WorkloadLink>>,
}

impl Reach {
    const fn pending(cluster: WorkloadCluster) -> Self {
        Self { workload: Workload::Pending(cluster), link: None }
    }

    const fn unusable(cluster: WorkloadCluster, problem: WorkloadProblem, message: String) -> Self {
        Self { workload: Workload::Unusable { cluster, problem, message }, link: None }
    }
}

/// The cluster of the Node: the one in the status while the Machine exists, else the one of the spec. There is no
/// fallback to another cluster: a cluster that cannot be used is reported.
pub(super) async fn reach(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    object: &ObjectFacts,
    has_machine: bool,
) -> Reach {
    let recorded = object.record.workload_cluster.clone().filter(|_| has_machine);
    let wanted = match (recorded, &object.spec) {
        (Some(recorded), _) => *recorded,
        (None, Err(_)) => {
            let message = "the spec is invalid, so the workload cluster is unknown".to_owned();
            return Reach::unusable(WorkloadCluster::MANAGEMENT, WorkloadProblem::KubeconfigInvalid, message);
        }
        (None, Ok(spec)) => wanted_cluster(caches, key, spec),
    };
    reach_cluster(caches, key, wanted).await
}

/// The link to the cluster of the Node in the status, which may have outlived its Machine.
pub(super) async fn reach_former(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    object: &ObjectFacts,
    has_machine: bool,
) -> Option<Arc<WorkloadLink>> {
    let recorded = *object.record.workload_cluster.clone()?;
    if has_machine || object.record.node.is_none() {
        return None;
    }
    reach_cluster(caches, key, recorded).await.link
}

async fn reach_cluster(caches: &Arc<Caches>, key: &ObjectKey, wanted: WorkloadCluster) -> Reach {
    let Some((secret, in_secret)) = secret_of(key, &wanted) else {
        return reach_management(caches, key, wanted).await;
    };
    let store = secrets::secret(caches, &secret);
    match (store.sync_state(), store.view(&secret)) {
        (SyncState::Syncing, _) => Reach::pending(wanted),
        (SyncState::Failed(failure), _) => {
            secret_failure(&caches.settings.controller_namespace, &secret, wanted, &failure)
        }
        (SyncState::Synced, None) => {
            let message = format!(
                "there is no Secret {} in namespace {}; Cluster API or an operator has to write the kubeconfig of the \
                 workload cluster into it (key {in_secret})",
                secret.name, secret.namespace
            );
            Reach::unusable(wanted, WorkloadProblem::SecretMissing, message)
        }
        (SyncState::Synced, Some(facts)) => {
            let workload = WorkloadKey::Kubeconfig { secret, key: in_secret };
            reach_by(caches, workload, Some(facts), wanted).await
        }
    }
}

/// The cluster of a spec. It is the management cluster only if the operator allows it and no Secret is named.
fn wanted_cluster(caches: &Arc<Caches>, key: &ObjectKey, spec: &ValidSpec) -> WorkloadCluster {
    let (name, in_secret) = default_secret(spec);
    let may_be_management =
        spec.kubeconfig_secret.is_none() && caches.allows_management_nodes(&key.namespace);
    let secret = key.beside(name.clone());
    if may_be_management && secrets::secret(caches, &secret).is_known_absent(&secret) {
        return WorkloadCluster::MANAGEMENT;
    }
    WorkloadCluster::of_secret(name, in_secret)
}

async fn reach_management(caches: &Arc<Caches>, key: &ObjectKey, wanted: WorkloadCluster) -> Reach {
    if caches.allows_management_nodes(&key.namespace) {
        return reach_by(caches, WorkloadKey::Management, None, wanted).await;
    }
    let message = format!(
        "the status says that the Node is in the management cluster, but namespace {} is not listed in \
         --management-nodes-namespace",
        key.namespace
    );
    Reach::unusable(wanted, WorkloadProblem::KubeconfigInvalid, message)
}

async fn reach_by(
    caches: &Arc<Caches>,
    workload: WorkloadKey,
    secret: Option<SecretFacts>,
    cluster: WorkloadCluster,
) -> Reach {
    let link = match links::link(caches, &workload, secret.as_ref()).await {
        Ok(link) => link,
        Err(error) => {
            let problem = match &error {
                LinkError::Kubeconfig { .. } => WorkloadProblem::KubeconfigInvalid,
                LinkError::TooManyClusters(_) => WorkloadProblem::TooManyClusters,
            };
            return Reach::unusable(cluster, problem, error.to_string());
        }
    };
    match link.nodes.sync_state() {
        SyncState::Syncing => Reach::pending(cluster),
        SyncState::Synced if link.is_lost() => {
            let message =
                "the Nodes of the workload cluster could not be read for 5 minutes, so the state of the Node is unknown; \
                           the controller continues when they can be read again"
                    .to_owned();
            Reach::unusable(cluster, WorkloadProblem::Unreachable, message)
        }
        SyncState::Synced => same_cluster(cluster, link),
        SyncState::Failed(failure) => {
            let problem = match failure.kind {
                ReadFailureKind::Forbidden => WorkloadProblem::Refused,
                ReadFailureKind::NoSuchKind
                | ReadFailureKind::OtherVersion
                | ReadFailureKind::Unreachable => WorkloadProblem::Unreachable,
            };
            let message = format!("the Nodes of the workload cluster cannot be listed: {}", failure.message);
            Reach::unusable(cluster, problem, message)
        }
    }
}

/// The cluster of a Secret that cannot be read. `controller` is the namespace of the controller.
fn secret_failure(
    controller: &str,
    secret: &ObjectKey,
    wanted: WorkloadCluster,
    failure: &ReadFailure,
) -> Reach {
    match failure.kind {
        ReadFailureKind::Forbidden => {
            let message = format!(
                "the controller may not read Secret {secret}: {}; allow it with `kubectl create rolebinding \
                 5spot-kubeconfig-reader --clusterrole=5spot-kubeconfig-reader \
                 --serviceaccount={controller}:5spot-controller --namespace={}`",
                failure.message, secret.namespace
            );
            Reach::unusable(wanted, WorkloadProblem::SecretForbidden, message)
        }
        ReadFailureKind::NoSuchKind | ReadFailureKind::OtherVersion | ReadFailureKind::Unreachable => {
            let message = format!("Secret {secret} cannot be read: {}", failure.message);
            Reach::unusable(wanted, WorkloadProblem::Unreachable, message)
        }
    }
}

/// A link is used only if it leads to the cluster in which the Node was last seen.
fn same_cluster(mut cluster: WorkloadCluster, link: Arc<WorkloadLink>) -> Reach {
    let identity = link.identity();
    match (&cluster.cluster_uid, identity) {
        (Some(recorded), Some(now)) if *recorded != now => {
            let by = cluster.secret_name.as_deref().map_or_else(
                || "the controller's own configuration".to_owned(),
                |name| format!("the kubeconfig in Secret {name}"),
            );
            let message = format!(
                "{by} leads to another cluster than the one in which the Node was last seen (the UID of its kube-system \
                 namespace is {now}, and was {recorded}); the controller changes nothing there"
            );
            Reach::unusable(cluster, WorkloadProblem::WrongCluster, message)
        }
        (_, identity) => {
            cluster.cluster_uid = identity.or(cluster.cluster_uid);
            Reach { workload: Workload::Reachable(cluster), link: Some(link) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_secret_names_the_service_account() {
        let secret = ObjectKey::new("shop", "prod-kubeconfig");
        let cluster = WorkloadCluster::of_secret("prod-kubeconfig", "value");
        let failure = ReadFailure { kind: ReadFailureKind::Forbidden, message: "no (403)".to_owned() };
        let reach = secret_failure("machines", &secret, cluster, &failure);
        let Workload::Unusable { message, .. } = reach.workload else { panic!("it cannot be used") };
        let expected = "--serviceaccount=machines:5spot-controller --namespace=shop`";
        assert!(message.ends_with(expected), "{message}");
    }
}
