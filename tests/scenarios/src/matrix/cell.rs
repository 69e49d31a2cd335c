//! One emergency with one thing that is broken.

use super::{Emergency, Expected, Hindrance};
use crate::kinds::{Kind, MACHINE, NODE, SCHEDULED_MACHINE, SECRET};
use crate::plays::closing::hold;
use crate::scenario::Ending;
use crate::subject::{CLUSTER_NAME, Subject};
use crate::surroundings::EXIT_DELAY_ANNOTATION;
use crate::world::World;
use anyhow::{Context as _, bail, ensure};
use five_spot_standins::STOPS_AFTER_ANNOTATION;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// How many times as long as in virtual time an emergency may take on a real control plane, whose requests and watches take
/// their time while other tests run.
const REAL_TIME_FACTOR: u32 = 2;

/// How long after the fault has been lifted everything has to be where it belongs: as long as two of the longest pauses
/// between retries.
const CONVERGES_WITHIN: Duration = Duration::from_mins(10);

/// When the fault comes to an object whose finalizer time is about to end, counted from its deletion: late enough for its
/// drain to be held up already, early enough for the fault to be in force at the end.
const BEFORE_FINALIZER_BOUND: SignedDuration = SignedDuration::from_secs(500);

/// How long the machine of an object that gave it away is watched.
const STAYS: Duration = Duration::from_secs(10);

/// A cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What has to happen.
    pub emergency: Emergency,
    /// What is broken meanwhile.
    pub hindrance: Hindrance,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.emergency, self.hindrance)
    }
}

impl Cell {
    /// The bounds.
    pub fn expected(&self) -> Expected {
        Expected::of(self.emergency, self.hindrance)
    }

    /// Runs it in a world with two clusters and a running controller.
    pub fn run<'a>(&self, world: &'a dyn World) -> BoxFuture<'a, anyhow::Result<Ending>> {
        (*self).play(world).boxed()
    }

    async fn play(self, world: &dyn World) -> anyhow::Result<Ending> {
        let Self { emergency, hindrance } = self;
        let subject = self.lent(world).await?;
        let node = subject.node().await?;
        hindrance.populate(world, &node).await?;
        if emergency.has_budget() {
            hold(world, &node).await?;
        }
        let (begun, lift) = match emergency {
            Emergency::Reclaim if hindrance.hides_node() => {
                world.pod_that(&node, "slow", stops_slowly()).await?;
                let begun = world.now();
                emergency.begin(world, &subject, &node).await?;
                subject.until_phase("EmergencyRemove").await?;
                (begun, hindrance.begin(world, &subject, &node).await?)
            }
            Emergency::FinalizerBound => {
                let begun = world.now();
                emergency.begin(world, &subject, &node).await?;
                world.sleep_until(begun + BEFORE_FINALIZER_BOUND).await;
                (begun, hindrance.begin(world, &subject, &node).await?)
            }
            Emergency::KillSwitch
            | Emergency::Reclaim
            | Emergency::Deletion
            | Emergency::OrphaningDeletion => {
                let lift = hindrance.begin(world, &subject, &node).await?;
                let begun = world.now();
                emergency.begin(world, &subject, &node).await?;
                (begun, lift)
            }
        };
        self.takes_effect(world, &subject, begun).await?;
        hindrance.end(world, &node, lift).await.context("lifting the fault")?;
        self.converges(world, &subject).await
    }

    /// An object with a machine, whose kubeconfig leads through a line that can be cut.
    async fn lent<'a>(&self, world: &'a dyn World) -> anyhow::Result<Subject<'a>> {
        world.make_cluster(CLUSTER_NAME).await?;
        let secret = world.kubeconfig_secret().context("there is a Secret")?;
        let text = world.kubeconfig_by_another_line().await?;
        world.patch(SECRET, &secret, json!({"stringData": {"value": text}})).await?;
        let spec = if self.emergency == Emergency::Reclaim && self.hindrance.hides_node() {
            json!({"reclaim": {"podGracePeriod": "45s"}})
        } else {
            json!({})
        };
        let subject = Subject::make_without_cluster(world, spec).await?;
        subject.until_ready().await?;
        Ok(subject)
    }

    /// The emergency has its effect in time, although the fault lasts.
    async fn takes_effect(
        &self,
        world: &dyn World,
        subject: &Subject<'_>,
        begun: Timestamp,
    ) -> anyhow::Result<()> {
        let Expected { machine_kept, machine_deleted, object_gone } = self.expected();
        let stays =
            |machine: &Value| !machine.is_null() && machine["metadata"]["deletionTimestamp"].is_null();
        if machine_kept > Duration::ZERO {
            world.lasts(MACHINE, &subject.machine(), "existing", machine_kept, stays).await?;
        }
        if let Some(bound) = machine_deleted {
            let (machine, is_deleted) = (subject.machine(), |machine: &Value| !stays(machine));
            within(world, begun, bound, (MACHINE, &machine), "to be deleted", is_deleted).await?;
        }
        if self.emergency == Emergency::Reclaim {
            let is_off = |object: &Value| object["spec"]["schedule"]["enabled"] == false;
            let bound = machine_deleted.unwrap_or_default() + Duration::from_secs(5);
            let object = (SCHEDULED_MACHINE, subject.name());
            within(world, begun, bound, object, "to be switched off", is_off).await?;
        }
        if let Some(bound) = object_gone {
            let object = (SCHEDULED_MACHINE, subject.name());
            within(world, begun, bound, object, "to be gone", Value::is_null).await?;
        }
        if machine_deleted.is_none() {
            world.lasts(MACHINE, &subject.machine(), "existing", STAYS, stays).await?;
        }
        Ok(())
    }

    /// Everything is where it belongs once the fault has been lifted.
    async fn converges(&self, world: &dyn World, subject: &Subject<'_>) -> anyhow::Result<Ending> {
        let converged = async {
            match self.emergency {
                Emergency::KillSwitch => {
                    subject.until_phase("Terminated").await?;
                    subject.until_nothing_left().await?;
                    Ok(Ending::phase(subject.name(), "Terminated").machines(1, 1))
                }
                Emergency::Reclaim => {
                    let object = subject.until_phase("Disabled").await?;
                    let records = object["status"]["reclaims"].as_array().cloned().unwrap_or_default();
                    // A Node that is gone cannot tell any more what could not be written down while it was there.
                    let is_lost = self.hindrance.refuses_status() && records.is_empty();
                    let is_finished = records.len() == 1 && !records[0]["finishedAt"].is_null();
                    ensure!(is_lost || is_finished, "{object}");
                    subject.until_nothing_left().await?;
                    Ok(Ending::phase(subject.name(), "Disabled").machines(1, 1))
                }
                Emergency::Deletion | Emergency::FinalizerBound => {
                    subject.until_gone().await?;
                    subject.until_nothing_left().await?;
                    Ok(Ending::gone(subject.name()).machines(1, 1))
                }
                Emergency::OrphaningDeletion => {
                    subject.until_gone().await?;
                    Ok(Ending::gone(subject.name()).machines(1, 0).orphaned())
                }
            }
        };
        let Ok(ending) = tokio::time::timeout(CONVERGES_WITHIN, converged).await else {
            let (object, machine) = (subject.get().await?, world.get(MACHINE, &subject.machine()).await?);
            let nodes = world.list(NODE).await?.len();
            bail!("did not converge after the fault was lifted: {object}\n{machine}\n{nodes} Nodes");
        };
        ending.context("after the fault was lifted")
    }
}

/// Waits until an object is as wanted, which has to be so in time.
async fn within(
    world: &dyn World,
    begun: Timestamp,
    bound: Duration,
    (kind, name): (Kind, &str),
    what: &str,
    wanted: impl FnMut(&Value) -> bool + Send,
) -> anyhow::Result<()> {
    let bound = if world.pace().is_virtual { bound } else { bound * REAL_TIME_FACTOR };
    let passed = Duration::try_from(world.now().duration_since(begun)).unwrap_or_default();
    // Something that is so already is seen by the first look.
    let rest = bound.saturating_sub(passed).max(Duration::from_millis(1));
    match world.seek(kind, name, rest, wanted).await {
        Ok(_) => Ok(()),
        Err(last) => bail!("waited {bound:?} for {} {name} {what}; it was last seen as {last}", kind.kind),
    }
}

/// A pod that takes longer to stop than anybody should wait.
fn stops_slowly() -> Value {
    json!({
        "metadata": {"annotations": {STOPS_AFTER_ANNOTATION: "40s", EXIT_DELAY_ANNOTATION: "40s"}},
        "spec": {"terminationGracePeriodSeconds": 45},
    })
}
