//! The causes for which an object is reconciled.

/// A change that concerns an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeCause {
    /// The object itself, apart from its status.
    Object,
    /// The status of the object alone: as a rule our own write.
    Status,
    /// Its namespace, which may be paused.
    Namespace,
    /// Its Cluster.
    Cluster,
    /// Its Machine.
    Machine,
    /// An object of a provider that belongs to it.
    Provider,
    /// A Secret with the kubeconfig of its cluster.
    Secret,
    /// The claim on its physical machine, or another object that has or wants it.
    Claim,
    /// Its Node.
    Node,
    /// The ConfigMap of the reclaim agent on its node.
    AgentConfig,
    /// A pod on its node.
    Pod,
    /// The status of a watch.
    Watch,
}

impl ChangeCause {
    /// True if one write of somebody who is not trusted can cause many of it, so that its reconciles are paced: a change in the
    /// workload cluster, whose administrator is not trusted, or of a Secret, which any number of objects may name.
    #[must_use]
    pub const fn is_paced(self) -> bool {
        match self {
            Self::Node | Self::AgentConfig | Self::Pod | Self::Secret => true,
            Self::Object
            | Self::Status
            | Self::Namespace
            | Self::Cluster
            | Self::Machine
            | Self::Provider
            | Self::Claim
            | Self::Watch => false,
        }
    }

    /// The reason in log lines, in the words that `kube` uses in its own spans.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object | Self::Status => "object updated",
            Self::Namespace => "related object updated: Namespace",
            Self::Cluster => "related object updated: Cluster",
            Self::Machine => "related object updated: Machine",
            Self::Provider => "related object updated: provider object",
            Self::Secret => "related object updated: Secret",
            Self::Claim => "related object updated: Lease of the machine",
            Self::Node => "related object updated: Node",
            Self::AgentConfig => "related object updated: ConfigMap of the agent",
            Self::Pod => "related object updated: Pod",
            Self::Watch => "a watch was lost or restored",
        }
    }
}
