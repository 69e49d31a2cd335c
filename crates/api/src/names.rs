//! Names: the API group, labels, annotations, the finalizer, and the objects that belong to a `ScheduledMachine`.

/// The API group of 5-Spot.
pub const GROUP: &str = "5spot.finos.org";

/// The served version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";

/// The kind of the resource.
pub const KIND: &str = "ScheduledMachine";

/// The maximum length of the name of a `ScheduledMachine`: `<name>-bootstrap` must fit into 63 characters.
pub const MAX_NAME_LENGTH: usize = 53;

/// The finalizer that keeps a deleted `ScheduledMachine` until its machine has been removed from the cluster.
pub const FINALIZER: &str = "5spot.finos.org/scheduledmachine";

/// The field manager of the objects that the controller applies.
pub const FIELD_MANAGER: &str = "5spot-controller";

/// The namespace of 5-Spot in the management cluster and in every workload cluster.
pub const SYSTEM_NAMESPACE: &str = "5spot-system";

/// The API groups that `bootstrapSpec` and `infrastructureSpec` may use.
pub const PROVIDER_GROUPS: [&str; 3] =
    ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "k0smotron.io"];

/// The domains of labels, annotations and taints that a spec may not set, because they belong to 5-Spot, Cluster API or
/// Kubernetes. Subdomains are included.
pub const RESERVED_DOMAINS: [&str; 4] = ["5spot.finos.org", "cluster.x-k8s.io", "kubernetes.io", "k8s.io"];

/// Labels that the controller sets.
pub mod label {
    /// On every object that is created for a `ScheduledMachine`; the value is the name of the `ScheduledMachine`.
    pub const SCHEDULED_MACHINE: &str = "5spot.finos.org/scheduled-machine";
    /// A label of Cluster API: the cluster that an object belongs to.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// On a Node: the value `enabled` schedules the reclaim agent there.
    pub const RECLAIM_AGENT: &str = "5spot.finos.org/reclaim-agent";
    /// The only value of [`RECLAIM_AGENT`].
    pub const RECLAIM_AGENT_ENABLED: &str = "enabled";
    /// On the Lease that claims a physical machine. The controller watches the Leases with this label and no others.
    pub const MACHINE_CLAIM: &str = "5spot.finos.org/machine-claim";
    /// A label of Cluster API on Pods: the way in which a drain treats them.
    pub const DRAIN: &str = "cluster.x-k8s.io/drain";
    /// On the Lease of an instance of the controller: the value of `--lease-name`.
    pub const INSTANCE_OF: &str = "5spot.finos.org/instance-of";
    /// On the Lease of an instance of the controller: the number of instances that it was started with.
    pub const INSTANCE_COUNT: &str = "5spot.finos.org/instance-count";
}

/// Annotations that the controller reads or sets.
pub mod annotation {
    /// On a `ScheduledMachine`: any new value makes the controller reconcile at once, regardless of the backoff.
    pub const FORCE_RECONCILE: &str = "5spot.finos.org/force-reconcile";
    /// On a `ScheduledMachine` or its namespace: holds back all changes except to the status. The value `all` also holds
    /// back the kill switch and emergency reclaims.
    pub const PAUSED: &str = "5spot.finos.org/paused";
    /// The value of [`PAUSED`] that holds everything back.
    pub const PAUSED_ALL: &str = "all";
    /// On a `ScheduledMachine` with `reclaim.resume: OnAnnotation`: the time at which a person allowed the machine to be lent
    /// again after a reclaim.
    pub const RESUME: &str = "5spot.finos.org/resume";
    /// The pause annotation of Cluster API.
    pub const CAPI_PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a Machine: Cluster API deletes it without draining its node.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// On a Machine: Cluster API deletes it without waiting for volumes to be detached.
    pub const EXCLUDE_WAIT_FOR_VOLUME_DETACH: &str =
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// On a Machine: the fingerprint of the part of the spec that it was created from. If it differs, the Machine is
    /// replaced.
    pub const MACHINE_HASH: &str = "5spot.finos.org/machine-hash";
    /// On a Machine: the fingerprint of what was last applied. If it differs, the Machine is applied again.
    pub const APPLIED_HASH: &str = "5spot.finos.org/applied-hash";
    /// On a Node: the taints that 5-Spot has set, as a compact, sorted JSON list of `{"effect","key"}`.
    pub const APPLIED_TAINTS: &str = "5spot.finos.org/applied-taints";
    /// On a Node: 5-Spot cordoned it and may uncordon it. The value is the `ScheduledMachine`, as `namespace/name`, so that
    /// it is still valid after a restore from a backup, which changes UIDs.
    pub const CORDONED_BY: &str = "5spot.finos.org/cordoned-by";
    /// On the ConfigMap of an agent: the `ScheduledMachine` that it was created for, as `namespace/name`.
    pub const MADE_FOR: &str = "5spot.finos.org/made-for";
    /// On the ConfigMap of an agent: the fingerprint of what it was rendered from. If it differs, it is rendered again.
    pub const AGENT_HASH: &str = "5spot.finos.org/agent-hash";
    /// On the Lease that claims a physical machine: the machine, as `machineIdentity` or `address:port` name it.
    pub const MACHINE_IDENTITY: &str = "5spot.finos.org/machine-identity";
    /// On the Lease that claims a physical machine: the UID of the `ScheduledMachine` that holds it.
    pub const HOLDER_UID: &str = "5spot.finos.org/holder-uid";
    /// On the ConfigMap of an agent: the UID of the Node that it was written for. Another one re-arms the agent.
    pub const AGENT_NODE_UID: &str = "5spot.finos.org/node-uid";
    /// On the Lease of an instance of the controller: the instances for whose objects it has stopped working, as `1/2,2/3`.
    pub const YIELDS_TO: &str = "5spot.finos.org/yields-to";
    /// On the Lease of an instance of the controller: the UID of the pod of its holder.
    pub const POD_UID: &str = "5spot.finos.org/pod-uid";
    /// On the Lease of an instance of the controller: its holder as a process of its machine, if it runs in no pod.
    pub const PROCESS: &str = "5spot.finos.org/process";
    /// On the namespace of the controller: the time until which removals are not held back, in RFC 3339.
    pub const ALLOW_REMOVALS: &str = "5spot.finos.org/allow-removals";
}

/// Returns the name of the bootstrap object of a `ScheduledMachine`.
pub fn bootstrap(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-bootstrap")
}

/// Returns the name of the infrastructure object of a `ScheduledMachine`.
pub fn infrastructure(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-infra")
}

/// Returns the name of the Cluster API Machine of a `ScheduledMachine`.
pub fn machine(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-machine")
}

/// Returns the name of the Lease by which an instance of the controller shows that it exists.
pub fn instance_lease(lease_name: &str, id: u32) -> String {
    format!("{lease_name}-instance-{id}")
}

/// Returns the name of the Secret in which Cluster API stores the kubeconfig of a workload cluster.
pub fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// The start of the name of every Lease that claims a physical machine.
const CLAIM_PREFIX: &str = "5spot-machine-";

/// Returns the name of the Lease that claims the physical machine with this fingerprint.
pub fn claim(fingerprint: &str) -> String {
    format!("{CLAIM_PREFIX}{fingerprint}")
}

/// Returns the fingerprint of the physical machine that a Lease of this name claims.
pub fn claimed_machine(lease: &str) -> Option<&str> {
    lease.strip_prefix(CLAIM_PREFIX)
}

/// Returns true if the key of a label, annotation or taint is in a domain that a spec may not use.
pub fn is_reserved_key(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    RESERVED_DOMAINS.iter().any(|reserved| {
        domain == *reserved || domain.strip_suffix(reserved).is_some_and(|d| d.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_still_makes_valid_object_names() {
        let name = "n".repeat(MAX_NAME_LENGTH);
        for object in [bootstrap(&name), infrastructure(&name), machine(&name)] {
            assert!(object.len() <= 63, "{object} has {} characters", object.len());
        }
        assert!(bootstrap(&"n".repeat(MAX_NAME_LENGTH + 1)).len() > 63, "the bound is not wasteful");
    }

    #[test]
    fn reserved_domains_cover_their_subdomains_and_nothing_else() {
        for key in
            ["5spot.finos.org/x", "cluster.x-k8s.io/x", "machine.cluster.x-k8s.io/x", "node.kubernetes.io/x"]
        {
            assert!(is_reserved_key(key), "{key}");
        }
        for key in ["example.org/x", "my5spot.finos.org/x", "notkubernetes.io/x", "plain", "kubernetes.io"] {
            assert!(!is_reserved_key(key), "{key}");
        }
    }
}
