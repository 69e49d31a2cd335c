//! Explanations: why a `ScheduledMachine` is in its state, what happens next and when, what blocks it, and what a person can
//! do about it.
//!
//! An explanation is computed from the same world and the same decision that a controller makes at that moment, so the two
//! cannot disagree. Only what a controller remembers of its own attempts is not known here; its last report in the status
//! stands in for that.

mod blockers;
mod next;

use crate::shell;
use five_spot_api::Phase;
use five_spot_api::condition::{ConditionType, Reason};
use five_spot_api::names;
use five_spot_core::world::{FormerNode, NodeFact, ReferenceProblemKind, WorkloadProblem};
use five_spot_core::{Decision, FaultKind, InvalidSpec, RemovalSettings, ValidSpec, World};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// The answer of `5spot explain`. It serializes to the documented JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The name of the `ScheduledMachine`.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The phase that a controller would report now.
    pub phase: Phase,
    /// True if a machine is wanted.
    pub wanted: bool,
    /// The reason why a machine is wanted or not.
    pub because: String,
    /// The Machine, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The Node, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The next things that happen by themselves, in order.
    pub next: Vec<Next>,
    /// Everything that keeps the object from the state that it should be in.
    pub blockers: Vec<Blocker>,
    /// The actions that a controller would carry out now.
    pub would_do: Vec<String>,
}

/// Something that happens at a certain time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Next {
    /// The time.
    pub at: Timestamp,
    /// The description.
    pub what: String,
}

/// Something that keeps the object from the state that it should be in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// The description.
    pub what: String,
    /// The words of the objects themselves.
    pub evidence: Vec<String>,
    /// The things that a person can do, the least harmful first.
    pub fix: Vec<Remedy>,
}

/// Something that a person can do. In JSON it is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Words: something for which there is no command, or something to consider before the command that follows.
    Advice(String),
    /// A command for the cluster of the `ScheduledMachine`.
    Command(String),
    /// A command for the workload cluster. The advice before it says so.
    WorkloadCommand(String),
}

impl Remedy {
    fn advice(words: impl Into<String>) -> Self {
        Self::Advice(words.into())
    }

    fn command(command: impl Into<String>) -> Self {
        Self::Command(command.into())
    }

    /// Makes a command for the workload cluster one for the cluster of the `ScheduledMachine`, which has the Node as well.
    fn move_here(&mut self) {
        if let Self::WorkloadCommand(command) = self {
            let command = std::mem::take(command);
            *self = Self::Command(command);
        }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        match self {
            Self::Advice(text) | Self::Command(text) | Self::WorkloadCommand(text) => text,
        }
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl Explanation {
    /// The same with something that could not be read in the workload cluster.
    #[must_use]
    pub fn with_unread(mut self, failure: &str) -> Self {
        self.blockers.push(Blocker {
            what: "not everything in the workload cluster could be read, so this list may be incomplete".to_owned(),
            evidence: vec![failure.to_owned()],
            fix: vec![Remedy::advice(
                "check the API server of the workload cluster, and the permissions of its kubeconfig (deploy/rbac-nodes)",
            )],
        });
        self
    }

    /// The same with commands that use further flags, such as `--context lab`. Those for workload clusters stay as they are.
    #[must_use]
    pub fn with_flags(mut self, flags: &str) -> Self {
        for remedy in self.blockers.iter_mut().flat_map(|blocker| &mut blocker.fix) {
            if let Remedy::Command(command) = remedy {
                *command = shell::with_flags(command, flags);
            }
        }
        self
    }
}

/// Everything that an explanation is computed from.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The spec.
    pub spec: Result<&'a ValidSpec, &'a InvalidSpec>,
    /// The observed state, with the recorded status.
    pub world: &'a World,
    /// The decision that a controller makes about it.
    pub decision: &'a Decision,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Subject<'a> {
    const fn valid(&self) -> Option<&'a ValidSpec> {
        match self.spec {
            Ok(spec) => Some(spec),
            Err(_) => None,
        }
    }

    const fn handling(&self) -> RemovalSettings {
        match self.spec {
            Ok(spec) => spec.handling,
            Err(spec) => spec.handling,
        }
    }

    fn name(&self) -> &'a str {
        &self.world.object.name
    }

    fn namespace(&self) -> &'a str {
        &self.world.object.namespace
    }

    fn phase(&self) -> Phase {
        let reported = self.world.status.phase.filter(|_| self.is_limited_to_the_reader());
        reported.or(self.decision.status.phase).unwrap_or(Phase::Pending)
    }

    /// True if the reader may not read or cannot reach something, and the last report of the controller shows that it can. What
    /// would follow from that for the controller is then wrong.
    fn is_limited_to_the_reader(&self) -> bool {
        let Some(fault) = &self.decision.fault else { return false };
        let depends_on_reader = matches!(
            fault.kind,
            FaultKind::Workload(WorkloadProblem::SecretForbidden | WorkloadProblem::Unreachable)
                | FaultKind::References(ReferenceProblemKind::Forbidden)
        );
        let reason = fault.kind.reason().as_str();
        let is_reported = self.world.status.conditions.iter().any(|condition| condition.reason == reason);
        depends_on_reader && self.world.status.phase.is_some() && !is_reported
    }

    /// The condition as the controller would write it now.
    fn condition(&self, kind: ConditionType) -> Option<(&'a str, &'a str, &'a str)> {
        let conditions = &self.decision.status.conditions;
        let found = conditions.iter().find(|condition| condition.type_ == kind.as_str())?;
        Some((found.status.as_str(), found.reason.as_str(), found.message.as_str()))
    }

    /// The condition as it is recorded.
    fn recorded(&self, kind: ConditionType) -> Option<(&'a str, &'a str, &'a str)> {
        let conditions = &self.world.status.conditions;
        let found = conditions.iter().find(|condition| condition.type_ == kind.as_str())?;
        Some((found.status.as_str(), found.reason.as_str(), found.message.as_str()))
    }

    /// The beginning of a `kubectl` command about the object.
    fn kubectl(&self, verb: &str) -> String {
        format!("kubectl {verb} scheduledmachine {} -n {}", self.name(), self.namespace())
    }
}

/// Explains an object.
pub fn explain(subject: &Subject<'_>) -> Explanation {
    let mut blockers = blockers::all(subject);
    if subject.world.workload.cluster().secret_name.is_none() {
        blockers.iter_mut().flat_map(|blocker| &mut blocker.fix).for_each(Remedy::move_here);
    }
    Explanation {
        name: subject.name().to_owned(),
        namespace: subject.namespace().to_owned(),
        phase: subject.phase(),
        wanted: is_wanted(subject.decision.demand),
        because: because(subject),
        machine: subject.world.machine.ours().map(|_| names::machine(subject.name())),
        node: node(subject),
        next: next::all(subject),
        blockers,
        would_do: if subject.is_limited_to_the_reader() {
            Vec::new()
        } else {
            subject.decision.actions.iter().map(ToString::to_string).collect()
        },
    }
}

/// Returns true if the reason of the condition `Scheduled` says that a machine is wanted.
pub const fn is_wanted(demand: Reason) -> bool {
    matches!(demand, Reason::InWindow | Reason::LeadTime | Reason::Override)
}

/// The reason why a machine is wanted or not, in one sentence.
fn because(subject: &Subject<'_>) -> String {
    let said = subject.condition(ConditionType::Scheduled).map_or("", |(_, _, message)| message);
    let status = &subject.decision.status;
    let Some(spec) = subject.valid() else { return said.to_owned() };
    let zone = spec.plan().schedule().timezone_name();
    let demand = subject.decision.demand;
    if demand == Reason::OutsideWindow && status.next_activation.is_none() {
        format!("{said}, and never opens again (time zone {zone})")
    } else if demand == Reason::InWindow && status.next_cleanup.is_none() {
        format!("{said}, and never closes (time zone {zone})")
    } else if matches!(demand, Reason::InWindow | Reason::LeadTime | Reason::OutsideWindow) {
        format!("{said} (time zone {zone})")
    } else {
        said.to_owned()
    }
}

/// The Node, or the one that is left behind.
fn node(subject: &Subject<'_>) -> Option<String> {
    let world = subject.world;
    match &world.node {
        NodeFact::Found(node) => Some(node.name.to_string()),
        NodeFact::Renamed(node) => Some(node.name.to_string()),
        NodeFact::Mismatch { name } => Some(name.to_string()),
        NodeFact::Unknown => world.status.node_ref.as_ref().map(|node| node.name.clone()),
        NodeFact::NotYet | NodeFact::Gone => match world.former_node {
            FormerNode::LeftBehind | FormerNode::Cached | FormerNode::Unknown => {
                world.status.node_ref.as_ref().map(|node| node.name.clone())
            }
            FormerNode::Gone => None,
        },
    }
}
