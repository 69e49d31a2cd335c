//! Carrying out what was decided: the only code that changes a cluster.
//!
//! Every action is idempotent, and carries the UID or the version that it was decided upon wherever a stale read could
//! do harm. The answers go onto the shelves, so that the next decision never looks at a state before our own write.

mod agent;
pub(crate) mod announce;
mod finalizer;
mod machine;
mod node;
mod object;
mod pod;
mod publish;
mod refusal;
mod report;
mod series;

use crate::cache::fleet::{Fleet, Inner};
use crate::transport::error::CallError;
use crate::transport::key::ObjectKey;
use crate::view::observe::Observed;
use crate::view::refresh::Original;
use five_spot_core::action::{Action, Event};
use five_spot_core::{Decision, Evidence};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How many pods of a node are evicted at the same time.
const EVICTIONS_AT_ONCE: usize = 10;

/// How many are deleted at the same time, while an owner waits. An API server takes 200 writes at a time by default.
const DELETIONS_AT_ONCE: usize = 40;

/// How long an emergency waits for its record to be written before it goes on without.
const RECORD_PATIENCE: Duration = Duration::from_secs(2);

/// How long an emergency waits for one answer before it goes on to the next action.
const ACTION_PATIENCE: Duration = Duration::from_secs(4);

/// The same for the annotations that only spare Cluster API a drain: what matters is the deletion after them.
const EXCLUDE_PATIENCE: Duration = Duration::from_millis(1500);

/// Why a decision was not carried out to its end.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Setback {
    /// What went wrong.
    #[source]
    pub error: CallError,
    /// It was the Node's taints that could not be written.
    pub taints: bool,
    /// What was decided is on record: events and status came before what went wrong.
    pub reported: bool,
}

impl From<CallError> for Setback {
    fn from(error: CallError) -> Self {
        Self { error, taints: false, reported: false }
    }
}

/// Everything that an action may need to know.
struct Job<'a> {
    fleet: &'a Arc<Inner>,
    key: &'a ObjectKey,
    observed: &'a Observed,
    original: Option<&'a Original>,
}

impl Fleet {
    /// Publishes the events of a decision and writes its status if it differs.
    pub async fn report(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        decision: &Decision,
    ) -> Result<(), Setback> {
        let job = Job { fleet: &self.inner, key, observed, original: None };
        job.publish_all(&decision.events).await;
        job.record(&decision.status).await.map_err(Setback::from)
    }

    /// Publishes the events of a decision, writes its status if it differs, and does its actions in order up to the
    /// first that fails.
    pub async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        original: Option<&Original>,
        decision: &Decision,
    ) -> Result<(), Setback> {
        let job = Job { fleet: &self.inner, key, observed, original };
        if decision.evidence == Evidence::BestEffort {
            return Box::pin(job.give_back(decision)).await;
        }
        self.report(key, observed, decision).await?;
        let mut postponed = None;
        for batch in batches(&decision.actions) {
            let Err(error) = job.act(batch).await else { continue };
            let taints = matches!(batch, [Action::PatchTaints { .. }]);
            let setback = Setback { error, taints, reported: true };
            if !matches!(batch, [Action::ExcludeDrain { .. }]) {
                return Err(setback);
            }
            // Whether Cluster API drains a node once more must not decide whether its Machine goes.
            postponed = Some(setback);
        }
        postponed.map_or(Ok(()), Err)
    }
}

/// The actions one by one, those about pods that follow each other together.
fn batches(actions: &[Action]) -> impl Iterator<Item = &[Action]> {
    actions.chunk_by(|one, next| is_about_a_pod(one) && is_about_a_pod(next))
}

const fn is_about_a_pod(action: &Action) -> bool {
    matches!(action, Action::Evict { .. } | Action::DeletePod { .. })
}

impl Job<'_> {
    /// Carries out an emergency. Neither events nor status nor an action that fails or hangs holds up what comes after
    /// it; what went wrong is reported in the end, and tried again.
    async fn give_back(&self, decision: &Decision) -> Result<(), Setback> {
        let (acted, recorded) = if decision.relies_on_record(&self.observed.world) {
            let recorded = bounded(RECORD_PATIENCE, "write the status", async {
                self.record_at_once(&decision.status).await
            })
            .await;
            if let Err(error) = &recorded {
                tracing::warn!(%error, "The status could not be written; the emergency is carried out without it");
            }
            let actions = match &recorded {
                Ok(()) => decision.actions.clone(),
                Err(_) => decision.actions_without_record(),
            };
            let (acted, ()) =
                tokio::join!(Box::pin(self.try_all(&actions)), Box::pin(self.publish_all(&decision.events)));
            (acted, recorded)
        } else {
            let report = async {
                let recorded = self.record(&decision.status).await;
                self.publish_all(&decision.events).await;
                recorded
            };
            tokio::join!(Box::pin(self.try_all(&decision.actions)), Box::pin(report))
        };
        let reported = recorded.is_ok();
        acted.and(recorded).map_err(|error| Setback { error, taints: false, reported })
    }

    /// Tries every action, whatever comes of those before it. The first failure counts.
    async fn try_all(&self, actions: &[Action]) -> Result<(), CallError> {
        let mut result = Ok(());
        for batch in batches(actions) {
            let patience = match batch {
                [Action::ExcludeDrain { .. }] => EXCLUDE_PATIENCE,
                [first, ..] if is_about_a_pod(first) => Duration::MAX,
                _ => ACTION_PATIENCE,
            };
            let what = batch.first().map(ToString::to_string).unwrap_or_default();
            let acted = bounded(patience, &what, Box::pin(self.act(batch))).await;
            if let Err(error) = &acted {
                tracing::warn!(%error, "An action of an emergency failed; the next one is tried");
            }
            result = result.and(acted);
        }
        result
    }

    /// Carries out one action, or several about pods, and says so.
    async fn act(&self, batch: &[Action]) -> Result<(), CallError> {
        match batch {
            [action] if !is_about_a_pod(action) => self.timed(action, self.single(action)).await,
            pods => self.clear_pods(pods).await,
        }
    }

    /// Carries out one action that is not about a pod.
    async fn timed(
        &self,
        action: &Action,
        work: impl Future<Output = Result<(), CallError>>,
    ) -> Result<(), CallError> {
        let began = Instant::now();
        work.await?;
        self.say_done(action, began);
        Ok(())
    }

    /// Says what was done, and how long it took.
    fn say_done(&self, action: &Action, began: Instant) {
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(duration_ms, "{}", action.done(&self.key.namespace, &self.key.name));
    }

    async fn single(&self, action: &Action) -> Result<(), CallError> {
        match action {
            Action::AddFinalizer => self.add_finalizer().await,
            Action::RemoveFinalizer => self.remove_finalizer().await,
            Action::ApplyBootstrap { cluster } => self.apply_bootstrap(cluster).await,
            Action::ApplyInfrastructure { cluster } => self.apply_infrastructure(cluster).await,
            Action::ApplyMachine => self.apply_machine().await,
            Action::ExcludeDrain { machine, volumes } => self.exclude_drain(machine, *volumes).await,
            Action::DeleteMachine { machine } => self.delete_machine(machine).await,
            Action::DeleteBootstrap { uid } => self.delete_bootstrap(uid).await,
            Action::DeleteInfrastructure { uid } => self.delete_infrastructure(uid).await,
            Action::Cordon { node } => self.cordon(node).await,
            Action::Uncordon { node } => self.uncordon(node).await,
            Action::Evict { .. } | Action::DeletePod { .. } => self.clear_pod(action).await,
            Action::PatchTaints { node, resource_version, taints, owned } => {
                self.patch_taints(node, resource_version, taints, owned).await
            }
            Action::LabelForAgent { node, wanted } => self.label_for_agent(node, *wanted).await,
            Action::ApplyAgentConfig { node } => self.apply_agent_config(node).await,
            Action::DeleteAgentConfig { node } => self.delete_agent_config(node).await,
            Action::DisableSchedule => self.disable_schedule().await,
            Action::ClearReclaimRequest { node } => self.clear_reclaim_request(node).await,
            Action::Publish(event) => {
                self.publish(event).await;
                Ok(())
            }
        }
    }

    async fn publish_all(&self, events: &[Event]) {
        for event in events {
            self.publish(event).await;
        }
    }

    /// Evicts or deletes pods, several at a time. One that fails does not keep the others; the first failure counts.
    async fn clear_pods(&self, actions: &[Action]) -> Result<(), CallError> {
        let calls: Vec<BoxFuture<'_, Result<(), CallError>>> =
            actions.iter().map(|action| self.clear_pod(action).boxed()).collect();
        let is_emergency = matches!(actions, [Action::DeletePod { .. }, ..]);
        let at_once = if is_emergency { DELETIONS_AT_ONCE } else { EVICTIONS_AT_ONCE };
        let results: Vec<Result<(), CallError>> = stream::iter(calls).buffered(at_once).collect().await;
        results.into_iter().collect()
    }

    async fn clear_pod(&self, action: &Action) -> Result<(), CallError> {
        let began = Instant::now();
        let goes = if let Action::Evict { pod } = action {
            self.evict(pod).await?
        } else if let Action::DeletePod { pod, grace } = action {
            self.delete_pod(pod, *grace).await?
        } else {
            false
        };
        if goes {
            self.say_done(action, began);
        }
        Ok(())
    }
}

/// Gives up on a call after a while. It may still be carried out.
async fn bounded(
    patience: Duration,
    call: &str,
    work: impl Future<Output = Result<(), CallError>>,
) -> Result<(), CallError> {
    timeout(patience, work).await.unwrap_or_else(|_| Err(CallError::late(call, patience)))
}
