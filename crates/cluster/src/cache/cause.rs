//! Why an object has to be looked at.

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The object itself.
    Object,
    /// Its namespace, which may be paused.
    Namespace,
    /// Its Cluster.
    Cluster,
    /// Its Machine.
    Machine,
    /// An object of a provider that belongs to it.
    Provider,
    /// A Secret that may lead to its node.
    Secret,
    /// Its Node.
    Node,
    /// What the agent on its node reads.
    AgentConfig,
    /// A pod on its node.
    Pod,
    /// Whether a watch can be relied upon.
    Watch,
}

impl Cause {
    /// In the words that `kube` uses in its own spans.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object updated",
            Self::Namespace => "related object updated: Namespace",
            Self::Cluster => "related object updated: Cluster",
            Self::Machine => "related object updated: Machine",
            Self::Provider => "related object updated: provider object",
            Self::Secret => "related object updated: Secret",
            Self::Node => "related object updated: Node",
            Self::AgentConfig => "related object updated: ConfigMap of the agent",
            Self::Pod => "related object updated: Pod",
            Self::Watch => "a watch was lost or is back",
        }
    }
}
