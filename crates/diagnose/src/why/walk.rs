//! The walk from an object to what blocks it.

use super::absence;
use super::answer::{Answer, BlockingCause, CauseFix, DeletionState, Step};
use super::command::Kubectl;
use super::facts::{Fact, Facts, Filter, Listed, Need, ObjectId, ResourceId, Unreadable};
use super::live::Live;
use super::{api_service, finalizer, namespace, node, pod, pod_start, scheduled_machine, volume, words};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;

/// The maximum number of facts that one walk asks for. Each of them is one request, or a few pages of a list; the dependents of
/// an owner are one request for each kind that the cluster serves.
pub const MAX_FACTS: usize = 200;

/// The maximum number of objects that one walk examines.
pub const MAX_OBJECTS: usize = 60;

/// The maximum distance from the object in question. The longest chain that makes sense, from a namespace by way of a Cluster, a
/// Machine, its infrastructure and a claim to a Node, has eight.
pub const MAX_DEPTH: usize = 12;

/// Conditions that report a problem when they are True.
const NEGATIVE: [&str; 4] = ["Paused", "Degraded", "Stalled", "Remediating"];

/// A question about an object.
#[derive(Clone, Debug)]
pub struct Question {
    /// The object.
    pub object: ObjectId,
    /// The program in the commands of the answer, with the flags that lead to the cluster: `kubectl --context lab`.
    pub kubectl: String,
}

impl Question {
    /// A question with commands for the current context.
    pub fn about(object: ObjectId) -> Self {
        Self { object, kubectl: "kubectl".to_owned() }
    }
}

/// The state of a walk after the facts so far.
#[derive(Clone, Debug, PartialEq)]
pub enum WalkProgress {
    /// These facts are needed. All of them are new.
    Needs(BTreeSet<Need>),
    /// The answer.
    Answer(Answer),
    /// There is no such object, and nothing refers to one that existed.
    NeverSeen(ObjectId),
    /// The object itself cannot be read.
    Unreadable(Unreadable),
}

/// Walks as far as the facts reach.
pub fn examine(question: &Question, facts: &Facts) -> WalkProgress {
    let mut walk = Walk::new(question, facts);
    match walk.ask(Need::Object(question.object.clone())) {
        None => {}
        Some(Fact::Object(value)) => {
            let object = Live(value);
            walk.visit(object, "the object in question");
            if walk.is_complete() {
                return WalkProgress::Answer(walk.answer(&object.id(), object.is_deleting()));
            }
        }
        Some(Fact::Unreadable(reason)) => return WalkProgress::Unreadable(reason.clone()),
        Some(Fact::Absent | Fact::List(_)) => {
            let existed = absence::find_traces(&mut walk, &question.object);
            if walk.is_complete() {
                return if existed {
                    WalkProgress::Answer(walk.into_answer(&question.object, DeletionState::Gone))
                } else {
                    WalkProgress::NeverSeen(question.object.clone())
                };
            }
        }
    }
    WalkProgress::Needs(walk.missing)
}

/// A walk in progress. It is repeated from the start whenever new facts have been read.
pub(super) struct Walk<'f> {
    pub(super) now: Timestamp,
    pub(super) kubectl: Kubectl<'f>,
    facts: &'f Facts,
    missing: BTreeSet<Need>,
    /// Objects that have been examined: a cycle ends at the second visit.
    seen: BTreeSet<ObjectId>,
    steps: Vec<Step>,
    causes: Vec<BlockingCause>,
    depth: usize,
    /// A limit was reached.
    cut: bool,
}

impl<'f> Walk<'f> {
    fn new(question: &'f Question, facts: &'f Facts) -> Self {
        Self {
            now: facts.now,
            kubectl: Kubectl(&question.kubectl),
            facts,
            missing: BTreeSet::new(),
            seen: BTreeSet::new(),
            steps: Vec::new(),
            causes: Vec::new(),
            depth: 0,
            cut: false,
        }
    }

    /// Returns a fact, or notes that it is missing. Beyond the limit it stays unknown.
    pub(super) fn ask(&mut self, need: Need) -> Option<&'f Fact> {
        if let Some(fact) = self.facts.get(&need) {
            return Some(fact);
        }
        if self.missing.contains(&need) {
            return None;
        }
        if self.facts.len() + self.missing.len() >= MAX_FACTS {
            self.cut = true;
        } else {
            self.missing.insert(need);
        }
        None
    }

    /// Returns an object; `None` while it is unknown.
    pub(super) fn object(&mut self, id: &ObjectId) -> Option<Result<Live<'f>, Missing<'f>>> {
        Some(match self.ask(Need::Object(id.clone()))? {
            Fact::Object(value) => Ok(Live(value)),
            Fact::Absent | Fact::List(_) => Err(Missing::Absent),
            Fact::Unreadable(reason) => Err(Missing::Unreadable(reason)),
        })
    }

    /// Returns the first objects of a kind; `None` while they are unknown.
    pub(super) fn list(
        &mut self,
        resource: ResourceId,
        namespace: Option<&str>,
        filter: Filter,
        limit: u32,
    ) -> Option<Result<&'f Listed, &'f Unreadable>> {
        let need = Need::List { resource, namespace: namespace.map(str::to_owned), filter, limit };
        Self::listed(self.ask(need)?)
    }

    /// The list in a fact.
    pub(super) fn listed(fact: &'f Fact) -> Option<Result<&'f Listed, &'f Unreadable>> {
        match fact {
            Fact::List(listed) => Some(Ok(listed)),
            Fact::Unreadable(reason) => Some(Err(reason)),
            // An empty list, from whoever answers so.
            Fact::Absent | Fact::Object(_) => None,
        }
    }

    /// True if an object has been examined.
    pub(super) fn has_seen(&self, id: &ObjectId) -> bool {
        self.seen.contains(id)
    }

    /// Examines an object. Returns true if it was examined now or before.
    pub(super) fn visit(&mut self, object: Live<'f>, relation: &str) -> bool {
        let id = object.id();
        if self.seen.contains(&id) {
            return true;
        }
        if self.seen.len() >= MAX_OBJECTS || self.depth >= MAX_DEPTH {
            self.cut = true;
            return false;
        }
        self.seen.insert(id.clone());
        let evidence = self.first_evidence(object);
        self.steps.push(Step {
            object: id.to_ref(),
            relation: relation.to_owned(),
            evidence,
            depth: self.depth,
        });
        let step = self.steps.len() - 1;
        self.depth += 1;
        self.look_closer(object, step);
        self.depth -= 1;
        true
    }

    /// Reads an object and examines it. Returns true unless it does not exist or cannot be read.
    pub(super) fn visit_id(&mut self, id: &ObjectId, relation: &str) -> bool {
        if self.seen.contains(id) {
            return true;
        }
        match self.object(id) {
            Some(Ok(object)) => self.visit(object, relation),
            Some(Err(_)) => false,
            // Until it is known there is nothing else to say.
            None => true,
        }
    }

    fn look_closer(&mut self, object: Live<'f>, step: usize) {
        match (object.group(), object.text("/kind")) {
            ("", "Namespace") if object.is_deleting() => namespace::deletion(self, object, step),
            ("", "Pod") if object.is_deleting() => pod::deletion(self, object, step),
            ("", "Pod") => pod_start::failure(self, object, step),
            ("", "Node") if !object.is_deleting() => node::readiness(self, object, step),
            ("", "PersistentVolumeClaim") if !object.is_deleting() => volume::binding(self, object, step),
            ("apiregistration.k8s.io", "APIService") if !object.is_deleting() => {
                api_service::availability(self, object);
            }
            (five_spot_api::names::GROUP, five_spot_api::names::KIND) if !object.is_deleting() => {
                scheduled_machine::explanation(self, object, step);
            }
            _ if object.is_deleting() => finalizer::deletion(self, object, step),
            _ => self.note_conditions(step, object),
        }
    }

    /// The times and finalizers of an object.
    fn first_evidence(&self, object: Live<'_>) -> Vec<String> {
        let mut evidence = Vec::new();
        if object.is_deleting() {
            evidence.push(match object.requested_at() {
                Some(at) => format!("deletion requested {}", words::ago(at, self.now)),
                None => "deletion requested".to_owned(),
            });
        }
        let finalizers = object.finalizers();
        if !finalizers.is_empty() {
            evidence.push(words::quoted(&format!("finalizers: {}", finalizers.join(", "))));
        }
        evidence
    }

    /// Adds evidence to a step.
    pub(super) fn note(&mut self, step: usize, evidence: impl Into<String>) {
        if let Some(step) = self.steps.get_mut(step) {
            step.evidence.push(evidence.into());
        }
    }

    /// Adds the conditions that something is wrong.
    pub(super) fn note_conditions(&mut self, step: usize, object: Live<'_>) {
        let is_wrong = |kind: &str, status: &str| (status == "True") == NEGATIVE.contains(&kind);
        let conditions = object.conditions();
        let wrong = conditions.iter().filter(|it| is_wrong(it.kind, it.status) && !it.message.is_empty());
        for condition in wrong.take(5) {
            self.note(step, words::condition(condition));
        }
    }

    /// Adds something that could not be read.
    pub(super) fn note_unread(&mut self, step: usize, what: &str, reason: &Unreadable) {
        self.note(step, words::quoted(&format!("{what} could not be read: {}", reason.in_words())));
    }

    /// Adds a blocker that does not end by itself.
    pub(super) fn blocked(
        &mut self,
        id: &ObjectId,
        cause: String,
        evidence: Vec<String>,
        fix: Vec<CauseFix>,
    ) {
        self.cause(id, cause, evidence, fix, true);
    }

    /// Adds a blocker that is expected to end by itself.
    pub(super) fn waiting(&mut self, id: &ObjectId, cause: String, evidence: Vec<String>) {
        self.cause(id, cause, evidence, Vec::new(), false);
    }

    /// Adds a blocker. The same one, found twice, is listed once.
    #[expect(clippy::needless_pass_by_value, reason = "every caller makes the text for this call")]
    pub(super) fn cause(
        &mut self,
        id: &ObjectId,
        cause: String,
        evidence: Vec<String>,
        fix: Vec<CauseFix>,
        needs_a_person: bool,
    ) {
        let object = id.to_ref();
        if self.causes.iter().any(|known| known.object == object && known.cause == cause) {
            return;
        }
        let cause = words::quoted(&cause);
        self.causes.push(BlockingCause { object, cause, evidence, fix, needs_a_person });
    }

    /// The time since the deletion of an object was due.
    pub(super) fn overdue(&self, object: Live<'_>) -> SignedDuration {
        object.deletion_time().map_or(SignedDuration::ZERO, |at| self.now.duration_since(at))
    }

    /// The time since anything about an object that is being deleted has changed.
    pub(super) fn unchanged(&self, object: Live<'_>) -> SignedDuration {
        let changed = object.last_change().map(|(at, _)| at);
        let latest = changed.into_iter().chain(object.deletion_time()).max();
        latest.map_or(SignedDuration::ZERO, |at| self.now.duration_since(at))
    }

    /// The number of blockers so far, to find out whether a part of the walk has found one.
    pub(super) fn causes_so_far(&self) -> usize {
        self.causes.len()
    }

    /// True if no fact is missing so far.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    fn answer(self, id: &ObjectId, is_deleting: bool) -> Answer {
        let state = match (is_deleting, self.causes.iter().any(|cause| cause.needs_a_person)) {
            (true, true) => DeletionState::Stuck,
            (true, false) => DeletionState::Deleting,
            (false, _) => DeletionState::NotDeleting,
        };
        self.into_answer(id, state)
    }

    fn into_answer(mut self, id: &ObjectId, state: DeletionState) -> Answer {
        if self.cut {
            let limits = format!(
                "there is more than was examined: the walk ends after {MAX_OBJECTS} objects or {MAX_FACTS} requests"
            );
            self.note(0, limits);
        }
        // Stable: within each half the order of the walk is kept.
        self.causes.sort_by_key(|cause| !cause.needs_a_person);
        Answer { object: id.to_ref(), state, steps: self.steps, causes: self.causes }
    }

    /// Adds a step for an object that is not there, or is not read.
    pub(super) fn step(&mut self, id: &ObjectId, relation: &str, evidence: Vec<String>) {
        self.steps.push(Step {
            object: id.to_ref(),
            relation: relation.to_owned(),
            evidence,
            depth: self.depth,
        });
    }
}

/// The reason for which there is no object to look at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Missing<'f> {
    /// It does not exist.
    Absent,
    /// It cannot be read.
    Unreadable(&'f Unreadable),
}
