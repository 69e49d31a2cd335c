//! The execution of a decision: its events, its status and its actions, in this order.

use crate::cache::caches::{Caches, machine_key};
use crate::cache::workload::node_key;
use crate::execute::job::{Basis, Job};
use crate::execute::outcome::{Acted, ActionOutcome, Execution, ExecutionError, Unfinished};
use crate::execute::pod::pod_key;
use crate::execute::publish::Publication;
use crate::transport::error::CallError;
use crate::transport::key::ObjectKey;
use crate::transport::operation::{Operation, TargetKind, Verb};
use crate::view::observed::Observed;
use five_spot_api::names;
use five_spot_api::reclaim::{CONFIG_NAMESPACE, config_map};
use five_spot_core::action::Action;
use five_spot_core::world::NodeName;
use five_spot_core::{Decision, Evidence};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The pods of a node that are evicted at the same time.
const EVICTIONS_AT_ONCE: usize = 10;

/// The pods that are deleted at the same time in an emergency. An API server takes 200 writes at a time by default.
const DELETIONS_AT_ONCE: usize = 40;

/// The time that an emergency, or a deletion, waits for its status to be written before it continues without.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that an emergency waits for one answer before it continues with the next action.
const ACTION_TIMEOUT: Duration = Duration::from_secs(4);

/// The same for the annotations that only spare Cluster API a drain: the deletion after them matters more.
const EXCLUDE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The time that an emergency waits for its events to be published. Nothing relies on them.
const URGENT_EVENTS_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that any other decision waits for its events. It is short, because they come before its actions.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Publishes the events of a decision, and writes its status if it differs.
pub async fn report(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    observed: &Observed,
    decision: &Decision,
) -> Result<(), ExecutionError> {
    let job = Job::new(caches, key, Basis::Cached(observed), decision);
    job.report(decision, false).await.map_err(ExecutionError::from)
}

/// The time that a decision waits for its events.
pub(super) const fn events_timeout(decision: &Decision) -> Duration {
    if decision.is_urgent { URGENT_EVENTS_TIMEOUT } else { EVENTS_TIMEOUT }
}

/// Publishes the events of a decision, writes its status if it differs, and carries out its actions in order up to the
/// first that fails. In an emergency no failure keeps the next action from being tried.
pub async fn carry_out(
    caches: &Arc<Caches>,
    key: &ObjectKey,
    basis: Basis<'_>,
    decision: &Decision,
) -> Execution {
    let job = Job::new(caches, key, basis, decision);
    let result = match decision.evidence {
        Evidence::BestEffort => Box::pin(job.carry_out_emergency(decision)).await,
        Evidence::Cached | Evidence::Confirmed => job.carry_out(decision).await,
    };
    job.into_execution(result)
}

/// The actions one by one; those on pods that follow each other come together.
fn batches(actions: &[Action]) -> impl Iterator<Item = &[Action]> {
    actions.chunk_by(|one, next| is_about_a_pod(one) && is_about_a_pod(next))
}

const fn is_about_a_pod(action: &Action) -> bool {
    matches!(action, Action::Evict { .. } | Action::DeletePod { .. })
}

impl Job<'_> {
    /// Publishes the events, and writes the status if it differs. In an emergency both have little time: the next decision
    /// waits for this one to end, and may be the one that deletes the Machine. The status of a deleted object has as little:
    /// its removal does not rely on it.
    async fn report(&self, decision: &Decision, is_deleted: bool) -> Result<(), CallError> {
        if decision.is_urgent {
            let (written, ()) = tokio::join!(
                Box::pin(self.write_in_time(self.write_status(&decision.status))),
                Box::pin(self.publish_all(decision))
            );
            return written;
        }
        self.publish_all(decision).await;
        let writing = self.write_status(&decision.status);
        if is_deleted { Box::pin(self.write_in_time(writing)).await } else { writing.await }
    }

    /// Gives up on a status that is not written within its time limit.
    async fn write_in_time(
        &self,
        writing: impl Future<Output = Result<(), CallError>>,
    ) -> Result<(), CallError> {
        timeout(STATUS_TIMEOUT, writing).await.unwrap_or_else(|_| {
            self.note_written(false);
            Err(CallError::late(self.on_object(Verb::WriteStatus), STATUS_TIMEOUT))
        })
    }

    async fn carry_out(&self, decision: &Decision) -> Result<(), ExecutionError> {
        let mut postponed = None;
        let is_deleted = self.observed.world.object.deletion.is_some();
        if let Err(error) = self.report(decision, is_deleted).await {
            // After a conflict the decision is made again.
            if !(is_deleted || decision.only_clears_up()) || error.is_stale() || error.is_guarded() {
                return Err(error.into());
            }
            tracing::warn!(%error, "failed to write the status; continuing without it");
            // An object that is released needs no status.
            postponed = (!decision.releases_object()).then(|| ExecutionError::from(error));
        }
        for batch in batches(&decision.actions) {
            let exclusion = batch.first().filter(|action| matches!(action, Action::ExcludeDrain { .. }));
            let acted = match exclusion {
                Some(action) => {
                    within(ACTION_TIMEOUT, || self.operation(action), Box::pin(self.act(batch))).await
                }
                None => self.act(batch).await,
            };
            let Err(error) = acted else { continue };
            let taints = matches!(batch, [Action::PatchTaints { .. }]);
            let failure = ExecutionError { error, taints, reported: true };
            if exclusion.is_none() {
                return Err(failure);
            }
            // A second drain by Cluster API is no reason to keep the Machine.
            postponed.get_or_insert(failure);
        }
        postponed.map_or(Ok(()), Err)
    }

    /// Carries out an emergency. No event, status or action that fails or hangs delays what comes after it; the first
    /// failure is returned in the end, and everything is retried. A status that could not be written the last time is
    /// not waited for again.
    async fn carry_out_emergency(&self, decision: &Decision) -> Result<(), ExecutionError> {
        let world = &self.observed.world;
        let needs_record = decision.relies_on_record(world);
        let (acted, written) = if needs_record && world.unrecorded_since.is_none() {
            let written = self.write_in_time(self.write_status_regardless(&decision.status)).await;
            if let Err(error) = &written {
                tracing::warn!(%error, "failed to write the status; carrying out the emergency without it");
            }
            let actions = match &written {
                Ok(()) => decision.actions.clone(),
                Err(_) => decision.actions_without_record(),
            };
            let (acted, ()) =
                tokio::join!(Box::pin(self.try_all(&actions)), Box::pin(self.publish_all(decision)));
            (acted, written)
        } else {
            let actions =
                if needs_record { decision.actions_without_record() } else { decision.actions.clone() };
            tokio::join!(Box::pin(self.try_all(&actions)), Box::pin(self.report(decision, true)))
        };
        let reported = written.is_ok();
        acted.and(written).map_err(|error| ExecutionError { error, taints: false, reported })
    }

    /// Tries every action, also after a failure. Returns the first failure.
    async fn try_all(&self, actions: &[Action]) -> Result<(), CallError> {
        let mut result = Ok(());
        for batch in batches(actions) {
            let [first, ..] = batch else { continue };
            let limit = if is_about_a_pod(first) {
                Duration::MAX
            } else if matches!(first, Action::ExcludeDrain { .. }) {
                EXCLUDE_TIMEOUT
            } else if matches!(first, Action::Publish(_)) {
                URGENT_EVENTS_TIMEOUT
            } else {
                ACTION_TIMEOUT
            };
            let acted = within(limit, || self.operation(first), Box::pin(self.act(batch))).await;
            if let Err(error) = &acted {
                tracing::warn!(%error, "an action of an emergency failed; continuing with the next one");
            }
            result = result.and(acted);
        }
        result
    }

    /// Carries out one action, or several on pods at the same time. One that fails does not keep the others from being
    /// tried; the first failure is returned.
    async fn act(&self, batch: &[Action]) -> Result<(), CallError> {
        let is_emergency = matches!(batch, [Action::DeletePod { .. }, ..]);
        let at_once = if is_emergency { DELETIONS_AT_ONCE } else { EVICTIONS_AT_ONCE };
        let calls: Vec<BoxFuture<'_, Result<(), CallError>>> =
            batch.iter().map(|action| self.perform(action).boxed()).collect();
        let results: Vec<Result<(), CallError>> = stream::iter(calls).buffered(at_once).collect().await;
        results.into_iter().collect()
    }

    /// Carries out one action, and logs its outcome.
    async fn perform(&self, action: &Action) -> Result<(), CallError> {
        let began = Instant::now();
        match self.dispatch(action).await {
            Ok(ActionOutcome::Done) => {
                let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                tracing::info!(duration_ms, "{}", action.done(&self.key.namespace, &self.key.name));
                self.note_done(action);
                Ok(())
            }
            // The refusal has been logged.
            Ok(ActionOutcome::Blocked | ActionOutcome::Unpublished) => Ok(()),
            Err(Unfinished::Skipped(reason)) => {
                self.note_skipped(action, reason);
                Ok(())
            }
            Err(Unfinished::Failed(error)) => Err(error),
        }
    }

    async fn dispatch(&self, action: &Action) -> Acted {
        match action {
            Action::AddFinalizer => self.add_finalizer().await,
            Action::RemoveFinalizer => self.remove_finalizer(self.warrant()?).await,
            Action::Claim { machine, replaces } => {
                self.claim(self.template()?, *machine, replaces.as_ref()).await
            }
            Action::Release { machine, version } => {
                self.release(self.confirmation()?, *machine, version).await
            }
            Action::ApplyBootstrap { cluster } => {
                self.apply_bootstrap(self.template()?, self.claimed()?, cluster).await
            }
            Action::ApplyInfrastructure { cluster } => {
                self.apply_infrastructure(self.template()?, self.claimed()?, cluster).await
            }
            Action::ApplyMachine => self.apply_machine(self.template()?, self.claimed()?).await,
            Action::ExcludeDrain { machine, volumes } => self.exclude_drain(machine, *volumes).await,
            Action::DeleteMachine { machine } => self.delete_machine(self.warrant()?, machine).await,
            Action::DeleteBootstrap { uid } => self.delete_bootstrap(self.warrant()?, uid).await,
            Action::DeleteInfrastructure { uid } => self.delete_infrastructure(self.warrant()?, uid).await,
            Action::Cordon { node } => self.cordon(self.link()?, node).await,
            Action::Uncordon { node } => self.uncordon(self.link()?, node).await,
            Action::Evict { pod } => self.evict(self.link()?, pod).await,
            Action::DeletePod { pod, grace } => self.delete_pod(self.link()?, pod, *grace).await,
            Action::PatchTaints { node, resource_version, taints, owned } => {
                self.patch_taints(self.link()?, node, resource_version, (taints, owned)).await
            }
            Action::LabelForAgent { node, wanted } => self.label_for_agent(self.link()?, node, *wanted).await,
            Action::ApplyAgentConfig { node } => self.apply_agent_config(self.link()?, node).await,
            Action::RearmAgent { node } => self.rearm_agent(self.link()?, node).await,
            Action::DeleteAgentConfig { node } => self.delete_agent_config(self.link()?, node).await,
            Action::DisableSchedule => self.disable_schedule().await,
            Action::ClearReclaimRequest { node } => self.clear_reclaim_request(self.link()?, node).await,
            Action::Publish(event) => Ok(match self.publish(event).await {
                Publication::New => ActionOutcome::Done,
                Publication::Known | Publication::Failed => ActionOutcome::Unpublished,
            }),
        }
    }

    /// Publishes the events of a decision, within a time limit: one after the other, or all at once in an emergency.
    async fn publish_all(&self, decision: &Decision) {
        let (limit, events) = (events_timeout(decision), &decision.events);
        let at_once = if decision.is_urgent { events.len().max(1) } else { 1 };
        let calls: Vec<BoxFuture<'_, ()>> =
            events.iter().map(|event| self.publish(event).map(drop).boxed()).collect();
        let all = stream::iter(calls).buffered(at_once).collect::<Vec<()>>();
        if timeout(limit, all).await.is_err() {
            let reasons: Vec<&str> = events.iter().map(|event| event.reason.as_str()).collect();
            tracing::warn!(
                reasons = reasons.join(","),
                "events could not be published within {} s",
                limit.as_secs()
            );
        }
    }

    /// The operation that an action mainly consists of.
    fn operation(&self, action: &Action) -> Operation {
        let on_capi = |verb, kind: &str, object| Operation::new(verb, TargetKind::cluster_api(kind), object);
        let on_node = |verb, name| Operation::new(verb, TargetKind::Node, node_key(name));
        let on_config = |verb, node: &NodeName| {
            let config = ObjectKey::new(CONFIG_NAMESPACE, config_map(node.as_str()));
            Operation::new(verb, TargetKind::ConfigMap, config)
        };
        let bootstrap = || self.key.beside(names::bootstrap(&self.key.name));
        let infrastructure = || self.key.beside(names::infrastructure(&self.key.name));
        match action {
            Action::AddFinalizer => self.on_object(Verb::AddFinalizer),
            Action::RemoveFinalizer => self.on_object(Verb::RemoveFinalizer),
            Action::Claim { machine, .. } => self.on_lease(Verb::Create, *machine),
            Action::Release { machine, .. } => self.on_lease(Verb::Delete, *machine),
            Action::ApplyBootstrap { .. } => on_capi(Verb::Apply, "bootstrap object", bootstrap()),
            Action::ApplyInfrastructure { .. } => {
                on_capi(Verb::Apply, "infrastructure object", infrastructure())
            }
            Action::ApplyMachine => on_capi(Verb::Apply, "Machine", machine_key(self.key)),
            Action::ExcludeDrain { .. } => on_capi(Verb::Annotate, "Machine", machine_key(self.key)),
            Action::DeleteMachine { .. } => on_capi(Verb::Delete, "Machine", machine_key(self.key)),
            Action::DeleteBootstrap { .. } => on_capi(Verb::Delete, "bootstrap object", bootstrap()),
            Action::DeleteInfrastructure { .. } => {
                on_capi(Verb::Delete, "infrastructure object", infrastructure())
            }
            Action::Cordon { node } => on_node(Verb::Cordon, &node.name),
            Action::Uncordon { node } => on_node(Verb::Uncordon, &node.name),
            Action::Evict { pod } => Operation::new(Verb::Evict, TargetKind::Pod, pod_key(pod)),
            Action::DeletePod { pod, .. } => Operation::new(Verb::Delete, TargetKind::Pod, pod_key(pod)),
            Action::PatchTaints { node, .. } => on_node(Verb::Taint, &node.name),
            Action::LabelForAgent { node, .. } => on_node(Verb::Label, &node.name),
            Action::ApplyAgentConfig { node } => on_config(Verb::Apply, &node.name),
            Action::RearmAgent { node } => on_config(Verb::Annotate, &node.name),
            Action::DeleteAgentConfig { node } => on_config(Verb::Delete, node),
            Action::DisableSchedule => self.on_object(Verb::DisableSchedule),
            Action::ClearReclaimRequest { node } => on_node(Verb::ClearReclaimRequest, &node.name),
            Action::Publish(_) => self.on_object(Verb::Publish),
        }
    }
}

/// Gives up on an operation after a while. It may still be carried out.
async fn within(
    limit: Duration,
    operation: impl FnOnce() -> Operation,
    work: impl Future<Output = Result<(), CallError>>,
) -> Result<(), CallError> {
    timeout(limit, work).await.unwrap_or_else(|_| Err(CallError::late(operation(), limit)))
}
