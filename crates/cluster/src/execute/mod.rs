//! Carrying out what was decided: the only code that changes a cluster.
//!
//! Every action is idempotent, and carries the UID or the version that it was decided upon wherever a stale read could
//! do harm. The answers go onto the shelves, so that the next decision never looks at a state before our own write.

mod agent;
mod finalizer;
mod machine;
mod node;
mod object;
mod pod;
mod publish;
mod refusal;
mod report;
mod series;

use crate::error::CallError;
use crate::fleet::{Fleet, Inner};
use crate::key::ObjectKey;
use crate::observe::Observed;
use crate::refresh::Original;
use five_spot_core::Decision;
use five_spot_core::action::Action;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::sync::Arc;

/// How many pods of a node are evicted or deleted at the same time.
const PODS_AT_ONCE: usize = 10;

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
        for event in &decision.events {
            job.publish(event).await;
        }
        job.report(&decision.status).await.map_err(Setback::from)
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
        self.report(key, observed, decision).await?;
        let job = Job { fleet: &self.inner, key, observed, original };
        let mut actions = decision.actions.as_slice();
        while let Some((first, rest)) = actions.split_first() {
            let pods = actions.iter().take_while(|action| is_about_a_pod(action)).count();
            if pods > 0 {
                let (batch, rest) = actions.split_at(pods);
                job.clear_pods(batch).await.map_err(|error| Setback {
                    error,
                    taints: false,
                    reported: true,
                })?;
                actions = rest;
            } else {
                let taints = matches!(first, Action::PatchTaints { .. });
                job.act(first).await.map_err(|error| Setback { error, taints, reported: true })?;
                actions = rest;
            }
        }
        Ok(())
    }
}

const fn is_about_a_pod(action: &Action) -> bool {
    matches!(action, Action::Evict { .. } | Action::DeletePod { .. })
}

impl Job<'_> {
    async fn act(&self, action: &Action) -> Result<(), CallError> {
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
            Action::Evict { .. } | Action::DeletePod { .. } => {
                self.clear_pods(std::slice::from_ref(action)).await
            }
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

    /// Evicts or deletes pods, several at a time. One that fails does not keep the others; the first failure counts.
    async fn clear_pods(&self, actions: &[Action]) -> Result<(), CallError> {
        let calls: Vec<BoxFuture<'_, Result<(), CallError>>> =
            actions.iter().map(|action| self.clear_pod(action).boxed()).collect();
        let results: Vec<Result<(), CallError>> = stream::iter(calls).buffered(PODS_AT_ONCE).collect().await;
        results.into_iter().collect()
    }

    async fn clear_pod(&self, action: &Action) -> Result<(), CallError> {
        if let Action::Evict { pod } = action {
            self.evict(pod).await?;
        } else if let Action::DeletePod { pod, grace } = action {
            self.delete_pod(pod, *grace).await?;
        }
        Ok(())
    }
}
