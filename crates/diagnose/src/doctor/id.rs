//! The ids of findings: a closed list, each with a page in `docs/troubleshooting`.

use serde::{Serialize, Serializer};
use std::fmt;

macro_rules! finding_ids {
    ($($(#[$doc:meta])+ $name:ident = $text:literal in $group:ident),+ $(,)?) => {
        /// The id of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingId { $($(#[$doc])+ $name),+ }

        impl FindingId {
            /// All ids.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The id in JSON, text and documentation.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The group in which text output shows it.
            pub const fn group(self) -> Group {
                match self { $(Self::$name => Group::$group),+ }
            }
        }
    };
}

finding_ids! {
    /// The controller does not run.
    ControllerNotRunning = "controller-not-running" in Controller,
    /// The controller runs and is not ready.
    ControllerNotReady = "controller-not-ready" in Controller,
    /// No instance holds the leader Lease.
    NoLeader = "no-leader" in Controller,
    /// The CRD of `ScheduledMachine` is not installed.
    CrdMissing = "crd-missing" in Installation,
    /// The CRD is older than the program.
    CrdOutdated = "crd-outdated" in Installation,
    /// The controller lacks a permission.
    RbacMissing = "rbac-missing" in Installation,
    /// Cluster API is not installed.
    CapiMissing = "capi-missing" in Installation,
    /// The schedule is closed now.
    ScheduleNotNow = "schedule-not-now" in Schedule,
    /// The schedule is disabled, or a kill switch is on.
    ScheduleDisabled = "schedule-disabled" in Schedule,
    /// The schedule is invalid.
    InvalidSchedule = "invalid-schedule" in Schedule,
    /// Clocks disagree.
    ClockSkew = "clock-skew" in Installation,
    /// Another instance works on the object.
    OtherShard = "other-shard" in Controller,
    /// A pause holds changes back.
    Paused = "paused" in Schedule,
    /// An object that the spec refers to does not exist or is not allowed.
    ReferenceNotFound = "reference-not-found" in References,
    /// The provider has not made the machine ready.
    ProviderNotReady = "provider-not-ready" in References,
    /// The API server refuses to create the objects of a machine.
    MachineCreationFailed = "machine-creation-failed" in References,
    /// An object of someone else has the name of one of ours.
    NameTaken = "name-taken" in References,
    /// The node did not become Ready within `joinTimeout`.
    JoinFailed = "join-failed" in Nodes,
    /// Reconciles fail, and the controller waits longer and longer.
    BackingOff = "backing-off" in References,
    /// A disruption budget blocks a drain.
    PdbBlocksDrain = "pdb-blocks-drain" in Removal,
    /// A drain is not done at its deadline.
    DrainOverdue = "drain-overdue" in Removal,
    /// The grace period of a pod is longer than the drain may take.
    LongGracePeriod = "long-grace-period" in Removal,
    /// A pod is still there after its grace period.
    PodStuckTerminating = "pod-stuck-terminating" in Removal,
    /// Cluster API does not finish the deletion of a Machine.
    MachineStuckDeleting = "machine-stuck-deleting" in Removal,
    /// A Machine exists whose `ScheduledMachine` does not.
    OrphanedMachine = "orphaned-machine" in Removal,
    /// The cleanup of a deleted object takes too long.
    FinalizerOverdue = "finalizer-overdue" in Removal,
    /// The kubeconfig of a workload cluster cannot be used.
    KubeconfigUnusable = "kubeconfig-unusable" in References,
    /// An emergency reclaim does not finish.
    EmergencyStuck = "emergency-stuck" in Reclaim,
    /// A reclaim did not disable the schedule.
    ScheduleNotDisabledAfterReclaim = "schedule-not-disabled-after-reclaim" in Reclaim,
    /// Reclaims follow one another within minutes.
    RapidReReclaim = "rapid-re-reclaim" in Reclaim,
    /// A machine is reclaimed in window after window.
    EjectedEveryWindow = "ejected-every-window" in Reclaim,
    /// The Node lacks the label for the reclaim agent.
    AgentLabelMissing = "agent-label-missing" in Agent,
    /// No reclaim agent runs on the node.
    AgentPodMissing = "agent-pod-missing" in Agent,
    /// The reclaim agent has no configuration.
    AgentConfigMissing = "agent-config-missing" in Agent,
    /// The configuration of the reclaim agent matches nothing.
    AgentConfigEmpty = "agent-config-empty" in Agent,
    /// The configuration of the reclaim agent cannot be read.
    AgentConfigInvalid = "agent-config-invalid" in Agent,
    /// A pattern differs from a usual process name only in its case.
    AgentCaseMismatch = "agent-case-mismatch" in Agent,
    /// The kernel refuses process events to the agent.
    AgentNetlinkEperm = "agent-netlink-eperm" in Agent,
    /// The agent cannot reach the process events of the host.
    AgentNetlinkUnreachable = "agent-netlink-unreachable" in Agent,
    /// The kernel sends no process events.
    AgentNoEvents = "agent-no-events" in Agent,
    /// The agent sees only the processes of its own pod.
    AgentHostpidMissing = "agent-hostpid-missing" in Agent,
    /// The taints wait for a Node that is named and not there.
    TaintNoNodeYet = "taint-no-node-yet" in Taints,
    /// The taints wait for a Node that is not Ready.
    TaintNodeNotReady = "taint-node-not-ready" in Taints,
    /// Someone else has set the same taint.
    TaintConflict = "taint-conflict" in Taints,
    /// The taints could not be written.
    TaintPatchFailed = "taint-patch-failed" in Taints,
    /// A watch is silent, or changes are not noticed.
    WatchStale = "watch-stale" in Controller,
    /// An object is reconciled again and again.
    ReconcileLoop = "reconcile-loop" in Controller,
    /// The API server throttles the controller.
    ApiThrottling = "api-throttling" in Controller,
    /// The controller cannot reach the API server.
    ApiUnreachable = "api-unreachable" in Controller,
    /// The controller uses much more memory than at its start.
    MemoryGrowing = "memory-growing" in Controller,
    /// A Node that had joined is gone.
    NodeLost = "node-lost" in Nodes,
    /// A Node has outlived its Machine.
    NodeLeftBehind = "node-left-behind" in Nodes,
    /// A kubeconfig leads to another cluster than before.
    WrongCluster = "wrong-cluster" in Nodes,
    /// Another object uses the same physical machine.
    MachineInUse = "machine-in-use" in References,
    /// Unplanned removals are held back.
    RemovalsHeld = "removals-held" in Schedule,
    /// Instances disagree on their number.
    ShardMismatch = "shard-mismatch" in Controller,
    /// The time zone may not be the intended one.
    TimezoneSuspect = "timezone-suspect" in Schedule,
    /// Pod Security keeps the agent from being started.
    AgentBlockedByPodSecurity = "agent-blocked-by-pod-security" in Agent,
}

impl FindingId {
    /// The page about it.
    pub fn docs(self) -> String {
        format!("docs/troubleshooting/{}.md", self.as_str())
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for FindingId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A group of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// CRDs, permissions, Cluster API and clocks.
    Installation,
    /// The program: its pods, its leader, its shards, its watches.
    Controller,
    /// The reason why a machine is wanted or not.
    Schedule,
    /// The references that a machine needs before it can be created.
    References,
    /// The Nodes of machines.
    Nodes,
    /// Drains and deletions.
    Removal,
    /// Emergency reclaims.
    Reclaim,
    /// The reclaim agent.
    Agent,
    /// The taints of Nodes.
    Taints,
}

impl Group {
    /// All groups, in the order of text output.
    pub const ALL: [Self; 9] = [
        Self::Installation,
        Self::Controller,
        Self::Schedule,
        Self::References,
        Self::Nodes,
        Self::Removal,
        Self::Reclaim,
        Self::Agent,
        Self::Taints,
    ];

    /// The heading in text output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Installation => "installation",
            Self::Controller => "controller",
            Self::Schedule => "schedules",
            Self::References => "machines",
            Self::Nodes => "nodes",
            Self::Removal => "drains and deletions",
            Self::Reclaim => "reclaims",
            Self::Agent => "reclaim agents",
            Self::Taints => "taints",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_documented_ones() {
        let documented = "controller-not-running controller-not-ready no-leader crd-missing crd-outdated rbac-missing capi-missing \
            schedule-not-now schedule-disabled invalid-schedule clock-skew other-shard paused reference-not-found \
            provider-not-ready machine-creation-failed name-taken join-failed backing-off pdb-blocks-drain \
            drain-overdue long-grace-period pod-stuck-terminating machine-stuck-deleting orphaned-machine \
            finalizer-overdue kubeconfig-unusable emergency-stuck schedule-not-disabled-after-reclaim \
            rapid-re-reclaim ejected-every-window agent-label-missing agent-pod-missing agent-config-missing \
            agent-config-empty agent-config-invalid agent-case-mismatch agent-netlink-eperm agent-netlink-unreachable \
            agent-no-events agent-hostpid-missing taint-no-node-yet taint-node-not-ready taint-conflict \
            taint-patch-failed watch-stale reconcile-loop api-throttling api-unreachable memory-growing node-lost \
            node-left-behind wrong-cluster machine-in-use removals-held shard-mismatch timezone-suspect \
            agent-blocked-by-pod-security";
        let ids: Vec<&str> = FindingId::ALL.iter().map(|id| id.as_str()).collect();
        assert_eq!(ids, documented.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ids.len(), 58);
    }
}
