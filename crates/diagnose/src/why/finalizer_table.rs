//! The well-known finalizers: who removes each of them, and what stays behind if a person does.

use five_spot_api::names;
use jiff::SignedDuration;

/// The program that removes a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Controller {
    /// A controller of kube-controller-manager.
    BuiltIn(&'static str),
    /// The API server itself.
    ApiServer,
    /// Cluster API.
    ClusterApi,
    /// The controller of 5-Spot.
    FiveSpot,
    /// Another program, in words.
    Other(&'static str),
}

/// The time that a controller may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It only has to look at other objects of the cluster.
    Cluster,
    /// It has to call something outside the cluster, such as a cloud or a storage system.
    Outside,
}

impl Pace {
    /// The time after which a finalizer on an object that does not change is overdue.
    pub(super) const fn wait_limit(self) -> SignedDuration {
        match self {
            Self::Cluster => SignedDuration::from_mins(1),
            Self::Outside => SignedDuration::from_mins(10),
        }
    }
}

/// A well-known finalizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFinalizer {
    /// The finalizer. `*` at the start or at the end stands for anything.
    pattern: &'static str,
    /// The component that removes it.
    pub(super) controller: Controller,
    pub(super) pace: Pace,
    /// The consequences of its removal by hand.
    pub(super) leaves: &'static str,
}

const fn row(
    pattern: &'static str,
    controller: Controller,
    pace: Pace,
    leaves: &'static str,
) -> KnownFinalizer {
    KnownFinalizer { pattern, controller, pace, leaves }
}

use Controller::{ApiServer, BuiltIn, ClusterApi, FiveSpot, Other};
use Pace::{Cluster, Outside};

const TABLE: &[KnownFinalizer] = &[
    row(
        "kubernetes.io/pvc-protection",
        BuiltIn("the PVC protection controller"),
        Cluster,
        "the claim is deleted while pods use it; with reclaim policy Delete their data is deleted while they \
         run",
    ),
    row(
        "kubernetes.io/pv-protection",
        BuiltIn("the PV protection controller"),
        Cluster,
        "the volume object is deleted while a claim is bound to it; the claim becomes Lost and the storage \
         may leak",
    ),
    row(
        "kubernetes.io/pv-controller",
        BuiltIn("the persistent volume controller"),
        Outside,
        "the disk or share stays in the storage system and must be deleted by hand",
    ),
    row(
        "external-provisioner.volume.kubernetes.io/finalizer",
        Other("the external-provisioner of the CSI driver"),
        Outside,
        "the disk or share stays in the storage system and must be deleted by hand",
    ),
    row(
        "external-attacher/*",
        Other("the external-attacher of the CSI driver"),
        Outside,
        "the volume may stay attached to its node, and cannot be attached elsewhere",
    ),
    row(
        "snapshot.storage.kubernetes.io/*",
        Other("the snapshot controller"),
        Outside,
        "snapshots stay in the storage system, or lose their source while they are being taken",
    ),
    row(
        "foregroundDeletion",
        BuiltIn("the garbage collector"),
        Cluster,
        "its dependents stay until the garbage collector finds them without an owner and deletes them in the background",
    ),
    row(
        "orphan",
        BuiltIn("the garbage collector"),
        Cluster,
        "its dependents keep owner references to it, and the garbage collector deletes them although they should have stayed",
    ),
    row(
        "service.kubernetes.io/load-balancer-cleanup",
        Other("the service controller of the cloud"),
        Outside,
        "the load balancer, its addresses and its firewall rules stay in the cloud and are billed",
    ),
    row(
        "batch.kubernetes.io/job-tracking",
        BuiltIn("the Job controller"),
        Cluster,
        "the Job does not count this pod, and may run it again",
    ),
    row(
        "customresourcecleanup.apiextensions.k8s.io",
        ApiServer,
        Cluster,
        "its instances stay in etcd, where they are not visible, their finalizers do not run, and they \
         reappear if the CRD is created again",
    ),
    row(
        names::FINALIZER,
        FiveSpot,
        Cluster,
        "the machine is not drained by 5-Spot: the garbage collector deletes the Machine, Cluster API removes the node, and the reclaim agent's label and ConfigMap may stay",
    ),
    row(
        "machine.cluster.x-k8s.io",
        ClusterApi,
        Outside,
        "the node is neither drained nor removed, its Node object stays, and the infrastructure object is deleted without any order",
    ),
    row(
        "cluster.cluster.x-k8s.io",
        ClusterApi,
        Outside,
        "machines, control plane and infrastructure of the cluster stay and must be deleted by hand",
    ),
    row(
        "cluster.x-k8s.io/*",
        ClusterApi,
        Outside,
        "the machines below it stay without an owner and must be deleted by hand",
    ),
    row(
        "*.cluster.x-k8s.io",
        Other("its Cluster API provider"),
        Outside,
        "whatever the provider has created for it stays: the physical or virtual machine, its disks, its membership in the cluster",
    ),
    row(
        "*.cluster.x-k8s.io/*",
        Other("its Cluster API provider"),
        Outside,
        "whatever the provider has created for it stays: the physical or virtual machine, its disks, its membership in the cluster",
    ),
    row(
        "resources-finalizer.argocd.argoproj.io*",
        Other("the application controller of Argo CD"),
        Cluster,
        "everything that the Application has deployed stays and must be managed by hand",
    ),
    row(
        "finalizers.fluxcd.io",
        Other("the Flux controller of its kind"),
        Cluster,
        "everything that it has deployed stays and must be managed by hand",
    ),
    row(
        "karpenter.sh/termination",
        Other("Karpenter"),
        Outside,
        "the node is not drained, and its machine stays in the cloud and is billed",
    ),
    row(
        "service.k8s.aws/resources",
        Other("the AWS Load Balancer Controller"),
        Outside,
        "the load balancer and its target groups stay in the cloud and are billed",
    ),
    row(
        "ingress.k8s.aws/resources",
        Other("the AWS Load Balancer Controller"),
        Outside,
        "the load balancer and its target groups stay in the cloud and are billed",
    ),
    row(
        "finalizer.acme.cert-manager.io",
        Other("cert-manager"),
        Outside,
        "the records or routes of the challenge stay in DNS or the ingress",
    ),
    row(
        "finalizer.managedresource.crossplane.io",
        Other("the Crossplane provider of its kind"),
        Outside,
        "the external resource stays in the cloud and is billed",
    ),
    row(
        "*.ceph.rook.io",
        Other("the Rook operator"),
        Outside,
        "pools, daemons and data of Ceph stay on the nodes",
    ),
    row(
        "longhorn.io",
        Other("the Longhorn manager"),
        Outside,
        "replicas of the volume stay on the disks of the nodes",
    ),
    row(
        "wrangler.cattle.io/*",
        Other("Rancher"),
        Cluster,
        "what Rancher has created for it, such as role bindings in other clusters, stays",
    ),
    row(
        "controller.cattle.io/*",
        Other("Rancher"),
        Cluster,
        "what Rancher has created for it, such as role bindings in other clusters, stays",
    ),
];

/// The consequences of removing a finalizer that is not in the table.
pub(super) const UNKNOWN_LEAVES: &str = "whatever its controller would have cleaned up stays behind, inside or outside the cluster, and must be deleted by hand";

/// Returns the entry of a finalizer.
pub(super) fn find(finalizer: &str) -> Option<&'static KnownFinalizer> {
    TABLE.iter().find(|known| known.matches(finalizer))
}

impl KnownFinalizer {
    fn matches(&self, finalizer: &str) -> bool {
        let (start, end) = (self.pattern.strip_prefix('*'), self.pattern.strip_suffix('*'));
        match (start, end) {
            (None, None) => finalizer == self.pattern,
            (Some(suffix), None) => finalizer.ends_with(suffix),
            (None, Some(prefix)) => finalizer.starts_with(prefix),
            (Some(_), Some(_)) => finalizer.contains(self.pattern.trim_matches('*')),
        }
    }
}

impl Controller {
    /// In words.
    pub(super) fn in_words(self) -> String {
        match self {
            BuiltIn(name) => format!("{name} (kube-controller-manager)"),
            ApiServer => "the API server".to_owned(),
            ClusterApi => "Cluster API (capi-controller-manager)".to_owned(),
            FiveSpot => "the 5-Spot controller".to_owned(),
            Other(name) => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_are_found_by_name_or_pattern() {
        let pattern = |finalizer: &str| find(finalizer).map(|known| known.pattern);
        for (finalizer, expected) in [
            ("kubernetes.io/pvc-protection", "kubernetes.io/pvc-protection"),
            ("5spot.finos.org/scheduledmachine", "5spot.finos.org/scheduledmachine"),
            ("external-attacher/disk-csi-azure-com", "external-attacher/*"),
            ("machine.cluster.x-k8s.io", "machine.cluster.x-k8s.io"),
            ("cluster.x-k8s.io/machinedeployment", "cluster.x-k8s.io/*"),
            ("awsmachine.infrastructure.cluster.x-k8s.io", "*.cluster.x-k8s.io"),
            ("infrastructure.cluster.x-k8s.io/remotemachine", "*.cluster.x-k8s.io/*"),
            ("resources-finalizer.argocd.argoproj.io/background", "resources-finalizer.argocd.argoproj.io*"),
        ] {
            assert_eq!(pattern(finalizer), Some(expected), "{finalizer}");
        }
        for finalizer in ["example.org/cleanup", "notkubernetes.io/pvc-protection", ""] {
            assert_eq!(pattern(finalizer), None, "{finalizer}");
        }
    }

    #[test]
    fn every_entry_says_what_stays_behind() {
        for known in TABLE {
            assert!(known.leaves.len() > 20 && !known.leaves.ends_with('.'), "{}", known.pattern);
        }
    }
}
