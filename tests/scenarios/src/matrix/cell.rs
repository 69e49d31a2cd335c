//! One emergency combined with one obstacle.

use super::{Expected, MatrixEmergency, Obstacle};
use crate::catalog::closing::hold;
use crate::environment::{Environment, Impairment};
use crate::fixtures::EXIT_DELAY_ANNOTATION;
use crate::kinds::{MACHINE, NODE, ObjectKind, SCHEDULED_MACHINE, SECRET};
use crate::scenario::Ending;
use crate::subject::{CLUSTER_NAME, Subject};
use anyhow::{Context as _, bail, ensure};
use five_spot_standins::STOPS_AFTER_ANNOTATION;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The factor on the time limits of an emergency on a real control plane, whose requests and watches take
/// their time while other tests run.
const REAL_TIME_FACTOR: u32 = 2;

/// The time after the fault has been lifted within which everything has to be in order: two of the longest pauses
/// between retries.
const CONVERGES_WITHIN: Duration = Duration::from_mins(10);

/// The time at which the fault comes to an object whose finalizer time is about to end, counted from its deletion: late
/// enough for its drain to be blocked already, early enough for the fault to be in force at the end.
const BEFORE_FINALIZER_BOUND: SignedDuration = SignedDuration::from_secs(500);

/// The time for which an orphaned machine is watched.
const STAYS: Duration = Duration::from_secs(10);

/// A cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The emergency.
    pub emergency: MatrixEmergency,
    /// The obstacle.
    pub obstacle: Obstacle,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.emergency, self.obstacle)
    }
}

impl Cell {
    /// The bounds.
    pub fn expected(&self) -> Expected {
        Expected::of(self.emergency, self.obstacle)
    }

    /// Runs it in an environment with two clusters and a running controller.
    pub fn run<'a>(&self, env: &'a dyn Environment) -> BoxFuture<'a, anyhow::Result<Ending>> {
        (*self).run_all_steps(env).boxed()
    }

    async fn run_all_steps(self, env: &dyn Environment) -> anyhow::Result<Ending> {
        let Self { emergency, obstacle } = self;
        let subject = self.lent(env).await?;
        let node = subject.node().await?;
        obstacle.populate(env, &node).await?;
        if emergency.has_budget() {
            hold(env, &node).await?;
        }
        let (begun, lift) = match emergency {
            MatrixEmergency::Reclaim if obstacle.hides_node() => {
                env.pod_that(&node, "slow", stops_slowly()).await?;
                let begun = env.now();
                emergency.begin(env, &subject, &node).await?;
                subject.until_phase("EmergencyRemove").await?;
                (begun, obstacle.begin(env, &subject, &node).await?)
            }
            MatrixEmergency::FinalizerBound => {
                let begun = env.now();
                emergency.begin(env, &subject, &node).await?;
                env.sleep_until(begun + BEFORE_FINALIZER_BOUND).await;
                (begun, obstacle.begin(env, &subject, &node).await?)
            }
            MatrixEmergency::KillSwitch
            | MatrixEmergency::Reclaim
            | MatrixEmergency::Deletion
            | MatrixEmergency::OrphaningDeletion => {
                let lift = obstacle.begin(env, &subject, &node).await?;
                let begun = env.now();
                emergency.begin(env, &subject, &node).await?;
                (begun, lift)
            }
        };
        self.takes_effect(env, &subject, begun).await?;
        obstacle.end(env, &node, lift).await.context("lifting the fault")?;
        self.converges(env, &subject).await
    }

    /// An object with a machine, whose kubeconfig uses a connection that can be interrupted.
    async fn lent<'a>(&self, env: &'a dyn Environment) -> anyhow::Result<Subject<'a>> {
        env.make_cluster(CLUSTER_NAME).await?;
        let secret = env.kubeconfig_secret().context("there is a Secret")?;
        let text = env.kubeconfig_by_another_line().await?;
        env.patch(SECRET, &secret, json!({"stringData": {"value": text}})).await?;
        let spec = if self.emergency == MatrixEmergency::Reclaim && self.obstacle.hides_node() {
            json!({"reclaim": {"podGracePeriod": "45s"}})
        } else {
            json!({})
        };
        let subject = Subject::make_without_cluster(env, spec).await?;
        subject.until_ready().await?;
        Ok(subject)
    }

    /// The emergency has its effect in time, although the fault lasts.
    async fn takes_effect(
        &self,
        env: &dyn Environment,
        subject: &Subject<'_>,
        begun: Timestamp,
    ) -> anyhow::Result<()> {
        let Expected { machine_kept, machine_deleted, object_gone } = self.expected();
        let stays =
            |machine: &Value| !machine.is_null() && machine["metadata"]["deletionTimestamp"].is_null();
        if machine_kept > Duration::ZERO {
            env.lasts(MACHINE, &subject.machine(), "existing", machine_kept, stays).await?;
        }
        if let Some(bound) = machine_deleted {
            let (machine, is_deleted) = (subject.machine(), |machine: &Value| !stays(machine));
            within(env, begun, bound, (MACHINE, &machine), "to be deleted", is_deleted).await?;
            if !env.pace().is_virtual {
                let passed = env.now().duration_since(begun).as_secs_f64();
                println!("{self}: the DELETE of the Machine was accepted after {passed:.1} s");
            }
        }
        if self.emergency == MatrixEmergency::Reclaim {
            let is_off = |object: &Value| object["spec"]["schedule"]["enabled"] == false;
            let bound = machine_deleted.unwrap_or_default() + Duration::from_secs(5);
            let object = (SCHEDULED_MACHINE, subject.name());
            within(env, begun, bound, object, "to be switched off", is_off).await?;
        }
        if let Some(bound) = object_gone {
            let object = (SCHEDULED_MACHINE, subject.name());
            within(env, begun, bound, object, "to be gone", Value::is_null).await?;
        }
        if machine_deleted.is_none() {
            env.lasts(MACHINE, &subject.machine(), "existing", STAYS, stays).await?;
        }
        Ok(())
    }

    /// Everything is where it belongs once the fault has been lifted.
    async fn converges(&self, env: &dyn Environment, subject: &Subject<'_>) -> anyhow::Result<Ending> {
        let converged = async {
            match self.emergency {
                MatrixEmergency::KillSwitch => {
                    subject.until_phase("Terminated").await?;
                    subject.until_nothing_left().await?;
                    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
                }
                MatrixEmergency::Reclaim => {
                    let object = subject.until_phase("Disabled").await?;
                    let records = object["status"]["reclaims"].as_array().cloned().unwrap_or_default();
                    // A fact of a Node that could not be recorded while the Node existed is lost with it.
                    let is_lost = self.obstacle.refuses_status() && records.is_empty();
                    let is_finished = records.len() == 1 && !records[0]["finishedAt"].is_null();
                    ensure!(is_lost || is_finished, "{object}");
                    subject.until_nothing_left().await?;
                    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
                }
                MatrixEmergency::Deletion | MatrixEmergency::FinalizerBound => {
                    subject.until_gone().await?;
                    subject.until_nothing_left().await?;
                    let ending = Ending::gone(subject.name()).machines(1, 1);
                    // An object is not kept for its claim: the next object of the machine takes the claim over.
                    let may_leave_claim = self.expected().is_forced()
                        || self.obstacle == Obstacle::Impaired(Impairment::Leases);
                    Ok(if may_leave_claim { ending.leaves_claim() } else { ending })
                }
                MatrixEmergency::OrphaningDeletion => {
                    subject.until_gone().await?;
                    Ok(Ending::gone(subject.name()).machines(1, 0).orphaned())
                }
            }
        };
        let Ok(ending) = tokio::time::timeout(CONVERGES_WITHIN, converged).await else {
            let (object, machine) = (subject.get().await?, env.get(MACHINE, &subject.machine()).await?);
            let nodes = env.list(NODE).await?.len();
            bail!("did not converge after the fault was lifted: {object}\n{machine}\n{nodes} Nodes");
        };
        ending.context("after the fault was lifted")
    }
}

/// Waits until an object is as wanted, which has to be so in time.
async fn within(
    env: &dyn Environment,
    begun: Timestamp,
    bound: Duration,
    (kind, name): (ObjectKind, &str),
    what: &str,
    wanted: impl FnMut(&Value) -> bool + Send,
) -> anyhow::Result<()> {
    let bound = if env.pace().is_virtual { bound } else { bound * REAL_TIME_FACTOR };
    let passed = Duration::try_from(env.now().duration_since(begun)).unwrap_or_default();
    // A state that is already reached is seen by the first read.
    let rest = bound.saturating_sub(passed).max(Duration::from_millis(1));
    match env.seek(kind, name, rest, wanted).await {
        Ok(_) => Ok(()),
        Err(last) => bail!("waited {bound:?} for {} {name} {what}; it was last seen as {last}", kind.kind),
    }
}

/// A pod that takes longer to stop than any time limit.
fn stops_slowly() -> Value {
    json!({
        "metadata": {"annotations": {STOPS_AFTER_ANNOTATION: "40s", EXIT_DELAY_ANNOTATION: "40s"}},
        "spec": {"terminationGracePeriodSeconds": 45},
    })
}
