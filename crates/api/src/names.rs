//! What things are called: the API group, labels, annotations, the finalizer, and the names of the
//! objects that belong to a `ScheduledMachine`.

/// The API group of 5-Spot.
pub const GROUP: &str = "5spot.finos.org";

/// The served version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";

/// The kind that a person writes.
pub const KIND: &str = "ScheduledMachine";

/// The longest name of a `ScheduledMachine`: `<name>-bootstrap` must still fit 63 characters.
pub const MAX_NAME_LENGTH: usize = 53;

/// Keeps a deleted `ScheduledMachine` until its machine has been given back.
pub const FINALIZER: &str = "5spot.finos.org/scheduledmachine";

/// The field manager of everything that the controller applies.
pub const FIELD_MANAGER: &str = "5spot-controller";

/// The namespace of 5-Spot's own objects, in the management and in every workload cluster.
pub const SYSTEM_NAMESPACE: &str = "5spot-system";

/// API groups that `bootstrapSpec` and `infrastructureSpec` may use.
pub const PROVIDER_GROUPS: [&str; 3] =
    ["bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "k0smotron.io"];

/// Prefixes of labels, annotations and taints that a spec may not set: they belong to 5-Spot itself,
/// to Cluster API, or to Kubernetes. A prefix covers its subdomains too.
pub const RESERVED_DOMAINS: [&str; 4] = ["5spot.finos.org", "cluster.x-k8s.io", "kubernetes.io", "k8s.io"];

/// Labels that the controller sets.
pub mod label {
    /// On every object made for a `ScheduledMachine`; its value is the name of that object.
    pub const SCHEDULED_MACHINE: &str = "5spot.finos.org/scheduled-machine";
    /// Cluster API's own: the cluster that an object belongs to.
    pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    /// On a Node: `enabled` brings the reclaim agent there.
    pub const RECLAIM_AGENT: &str = "5spot.finos.org/reclaim-agent";
    /// The one value of [`RECLAIM_AGENT`].
    pub const RECLAIM_AGENT_ENABLED: &str = "enabled";
    /// Cluster API's own, on Pods: how a drain treats them.
    pub const DRAIN: &str = "cluster.x-k8s.io/drain";
}

/// Annotations that the controller reads or sets.
pub mod annotation {
    /// Any new value makes the controller reconcile at once, whatever the back-off.
    pub const FORCE_RECONCILE: &str = "5spot.finos.org/force-reconcile";
    /// On a `ScheduledMachine` or its namespace: stop every write but status. The value `all` also
    /// holds back the kill switch and reclaims.
    pub const PAUSED: &str = "5spot.finos.org/paused";
    /// The value of [`PAUSED`] that holds everything back.
    pub const PAUSED_ALL: &str = "all";
    /// Cluster API's own pause.
    pub const CAPI_PAUSED: &str = "cluster.x-k8s.io/paused";
    /// On a Machine: CAPI deletes it without draining its node.
    pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
    /// On a Machine: CAPI deletes it without waiting for volumes.
    pub const EXCLUDE_WAIT_FOR_VOLUME_DETACH: &str =
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
    /// On a Machine: what of the spec it was made from. Another value means replacement.
    pub const MACHINE_HASH: &str = "5spot.finos.org/machine-hash";
    /// On a Machine: what was last applied to it. Another value means applying it again.
    pub const APPLIED_HASH: &str = "5spot.finos.org/applied-hash";
    /// On a Node: the taints that belong to 5-Spot, a compact JSON list of `{"effect","key"}`, sorted.
    pub const APPLIED_TAINTS: &str = "5spot.finos.org/applied-taints";
    /// On a Node: it was 5-Spot that cordoned it, and 5-Spot may uncordon it. The value is the `ScheduledMachine`, as
    /// `namespace/name`: one that comes back from a backup with another UID is the same.
    pub const CORDONED_BY: &str = "5spot.finos.org/cordoned-by";
    /// On an agent's ConfigMap: the `ScheduledMachine` that it was made for, as `namespace/name`.
    pub const MADE_FOR: &str = "5spot.finos.org/made-for";
    /// On an agent's ConfigMap: what it was rendered from. Another value means rendering it again.
    pub const AGENT_HASH: &str = "5spot.finos.org/agent-hash";
}

/// The name of the bootstrap object of the named `ScheduledMachine`.
pub fn bootstrap(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-bootstrap")
}

/// The name of the infrastructure object of the named `ScheduledMachine`.
pub fn infrastructure(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-infra")
}

/// The name of the CAPI Machine of the named `ScheduledMachine`.
pub fn machine(scheduled_machine: &str) -> String {
    format!("{scheduled_machine}-machine")
}

/// The Secret in which Cluster API keeps the kubeconfig of a workload cluster.
pub fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Whether a label, annotation or taint key lies in a domain that is not the user's to set.
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
