//! Obstacles: faults at the time of an emergency.

use crate::catalog::nodes::replace;
use crate::environment::{Environment, Impairment, ServerState, WrongServer};
use crate::fixtures::EXIT_DELAY_ANNOTATION;
use crate::kinds::{CLUSTER, DEFINITION, INFRASTRUCTURE, MACHINE, NODE, POD, SECRET};
use crate::subject::{CLUSTER_NAME, Subject, condition};
use anyhow::Context as _;
use five_spot_api::names::annotation::CAPI_PAUSED;
use five_spot_standins::{ProviderBehaviour, STOPS_AFTER_ANNOTATION, StepBehaviour};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::fmt;

/// A fault that lasts until it is lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The API server of the workload cluster accepts connections and does not answer.
    WorkloadHangs,
    /// It refuses connections.
    WorkloadRefused,
    /// It rejects the credentials.
    WorkloadUnauthorized,
    /// A web server answers in its place: `404 page not found`.
    WorkloadNotFound,
    /// The Secret refers to another cluster.
    WorkloadIsAnother,
    /// The Secret is gone.
    SecretGone,
    /// The CRD of the infrastructure object was deleted.
    ProviderKindGone,
    /// The provider never releases the machine.
    ProviderStuck,
    /// Cluster API is paused by the Cluster.
    ClusterPaused,
    /// Cluster API is paused by the Machine.
    MachinePaused,
    /// The Node is gone.
    NodeGone,
    /// The Node is not Ready.
    NodeNotReady,
    /// Another Node has taken its name.
    NodeReplaced,
    /// Pods have been terminating for a long time, and continue to.
    PodsStuck,
    /// Pods have finalizers that are never removed.
    PodsWithFinalizers,
    /// There are two hundred pods on the node.
    TwoHundredPods,
    /// Something around the controller does not work.
    Impaired(Impairment),
}

/// The data needed to lift an obstacle.
#[derive(Debug)]
pub(super) enum Lift {
    /// Nothing.
    Nothing,
    /// An object that was deleted has to be made again.
    Restore(Value),
    /// The Secret has to hold this kubeconfig.
    Kubeconfig(Value),
}

/// The pods that take part: enough for several requests in flight at once.
const PODS: usize = 3;

/// The finalizer on pods that are never released.
const FINALIZER: &str = "example.org/keep";

impl Obstacle {
    /// Every one.
    pub const ALL: [Self; 28] = [
        Self::WorkloadHangs,
        Self::WorkloadRefused,
        Self::WorkloadUnauthorized,
        Self::Impaired(Impairment::WorkloadForbidden),
        Self::WorkloadNotFound,
        Self::WorkloadIsAnother,
        Self::SecretGone,
        Self::ProviderKindGone,
        Self::ProviderStuck,
        Self::ClusterPaused,
        Self::MachinePaused,
        Self::Impaired(Impairment::ClusterApi),
        Self::Impaired(Impairment::MachinePatches),
        Self::Impaired(Impairment::MachinePatchesHang),
        Self::Impaired(Impairment::StatusTooLarge),
        Self::Impaired(Impairment::StatusInvalid),
        Self::Impaired(Impairment::StatusForbidden),
        Self::Impaired(Impairment::StatusHangs),
        Self::Impaired(Impairment::Events),
        Self::Impaired(Impairment::EventsHang),
        Self::Impaired(Impairment::Leases),
        Self::NodeGone,
        Self::NodeNotReady,
        Self::NodeReplaced,
        Self::PodsStuck,
        Self::PodsWithFinalizers,
        Self::TwoHundredPods,
        Self::Impaired(Impairment::SlowManagement),
    ];

    /// Returns true if the controller cannot see or change anything in the workload cluster.
    pub(super) const fn hides_workload(self) -> bool {
        matches!(
            self,
            Self::WorkloadHangs
                | Self::WorkloadRefused
                | Self::WorkloadUnauthorized
                | Self::Impaired(Impairment::WorkloadForbidden)
                | Self::WorkloadNotFound
                | Self::WorkloadIsAnother
                | Self::SecretGone
        )
    }

    /// Returns true if a request on the Node could not be seen, so that the fault has to come when it has been seen.
    pub(super) const fn hides_node(self) -> bool {
        self.hides_workload() || matches!(self, Self::NodeGone)
    }

    /// Returns true if Cluster API's pause holds back everything that is not an emergency.
    pub(super) const fn pauses(self) -> bool {
        matches!(self, Self::ClusterPaused | Self::MachinePaused)
    }

    /// Returns true if nothing can be written into status.
    pub(super) const fn refuses_status(self) -> bool {
        use Impairment::{StatusForbidden, StatusHangs, StatusInvalid, StatusTooLarge};
        matches!(self, Self::Impaired(StatusTooLarge | StatusInvalid | StatusForbidden | StatusHangs))
    }

    /// The pods that are on the node before anything happens.
    pub(super) async fn populate(self, env: &dyn Environment, node: &str) -> anyhow::Result<()> {
        if self == Self::TwoHundredPods {
            return env.pods_on(node, 200, 1).await;
        }
        let differs = if self == Self::PodsStuck {
            json!({
                "metadata": {"annotations": {STOPS_AFTER_ANNOTATION: "3600s", EXIT_DELAY_ANNOTATION: "3600s"}},
                "spec": {"terminationGracePeriodSeconds": 3600},
            })
        } else if self == Self::PodsWithFinalizers {
            json!({"metadata": {"finalizers": [FINALIZER]}})
        } else {
            return env.pods_on(node, PODS, 1).await;
        };
        for name in pods() {
            env.pod_that(node, &name, differs.clone()).await?;
        }
        Ok(())
    }

    /// Starts the obstacle.
    pub(super) async fn begin(
        self,
        env: &dyn Environment,
        subject: &Subject<'_>,
        node: &str,
    ) -> anyhow::Result<Lift> {
        let secret = env.kubeconfig_secret().context("there is a Secret")?;
        match self {
            Self::Impaired(impairment) => env.set_impaired(impairment, true).await?,
            Self::WorkloadHangs => env.set_other_line(ServerState::Silent),
            Self::WorkloadRefused => env.set_other_line(ServerState::Down),
            Self::WorkloadUnauthorized => {
                // The old credentials are no longer valid, and the new ones are not stored.
                let _ = env.new_kubeconfig().await?;
                return Ok(Lift::Kubeconfig(env.kubeconfig_by_another_line().await?.into()));
            }
            Self::WorkloadNotFound | Self::WorkloadIsAnother => {
                let good = env.kubeconfig_by_another_line().await?.into();
                let server = if self == Self::WorkloadNotFound {
                    WrongServer::NoApi
                } else {
                    WrongServer::OtherCluster
                };
                store(env, &secret, &env.kubeconfig_to(server).await?.into()).await?;
                return Ok(Lift::Kubeconfig(good));
            }
            Self::SecretGone => {
                let before = env.get(SECRET, &secret).await?;
                env.delete(SECRET, &secret).await?;
                return Ok(Lift::Restore(remade(&before)));
            }
            Self::ProviderKindGone => {
                let name = definition();
                let before = env.get(DEFINITION, &name).await?;
                env.delete(DEFINITION, &name).await?;
                env.until_gone(DEFINITION, &name).await?;
                return Ok(Lift::Restore(remade(&before)));
            }
            Self::ProviderStuck => {
                env.provider(ProviderBehaviour {
                    release: StepBehaviour::Hangs,
                    ..ProviderBehaviour::default()
                });
            }
            Self::ClusterPaused => drop(env.patch(CLUSTER, CLUSTER_NAME, paused(true)).await?),
            Self::MachinePaused => {
                drop(env.patch(MACHINE, &subject.machine(), annotated(&json!(""))).await?);
            }
            Self::NodeGone => env.delete(NODE, node).await?,
            Self::NodeNotReady => {
                env.silence(node, true).await?;
                let unheard = |node: &Value| condition(node, "Ready")["status"] != "True";
                env.until(NODE, node, "not to be Ready", unheard).await?;
            }
            Self::NodeReplaced => {
                let before = env.get(NODE, node).await?;
                replace(env, &before, &before["spec"]["providerID"]).await?;
            }
            Self::PodsStuck => {
                for name in pods() {
                    env.delete(POD, &name).await?;
                }
            }
            Self::PodsWithFinalizers | Self::TwoHundredPods => {}
        }
        Ok(Lift::Nothing)
    }

    /// Ends it.
    pub(super) async fn end(self, env: &dyn Environment, node: &str, lift: Lift) -> anyhow::Result<()> {
        let secret = env.kubeconfig_secret().context("there is a Secret")?;
        match lift {
            Lift::Nothing => {}
            Lift::Restore(object) => {
                let kind = if self == Self::SecretGone { SECRET } else { DEFINITION };
                env.create(kind, object).await?;
            }
            Lift::Kubeconfig(text) => store(env, &secret, &text).await?,
        }
        match self {
            Self::Impaired(impairment) => env.set_impaired(impairment, false).await?,
            Self::WorkloadHangs | Self::WorkloadRefused => env.set_other_line(ServerState::Up),
            Self::ProviderStuck => env.provider(ProviderBehaviour::default()),
            Self::ClusterPaused => drop(env.patch(CLUSTER, CLUSTER_NAME, paused(false)).await?),
            Self::MachinePaused => {
                for machine in env.list(MACHINE).await? {
                    let name = machine["metadata"]["name"].as_str().unwrap_or_default();
                    env.patch(MACHINE, name, annotated(&Value::Null)).await?;
                }
            }
            Self::NodeNotReady => {
                if !env.get(NODE, node).await?.is_null() {
                    env.silence(node, false).await?;
                }
            }
            Self::PodsStuck => {
                for name in pods() {
                    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                    gone_is_fine(env.api(POD).delete(&name, &now).await.map(drop))?;
                }
            }
            Self::PodsWithFinalizers => {
                for name in pods() {
                    if !env.get(POD, &name).await?.is_null() {
                        env.patch(POD, &name, json!({"metadata": {"finalizers": null}})).await?;
                    }
                }
            }
            // What was removed has been restored, or is removed with the machine.
            Self::WorkloadUnauthorized
            | Self::WorkloadNotFound
            | Self::WorkloadIsAnother
            | Self::SecretGone
            | Self::ProviderKindGone
            | Self::NodeGone
            | Self::NodeReplaced
            | Self::TwoHundredPods => {}
        }
        Ok(())
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkloadHangs => "workload-hangs",
            Self::WorkloadRefused => "workload-refused",
            Self::WorkloadUnauthorized => "workload-401",
            Self::Impaired(Impairment::WorkloadForbidden) => "workload-403",
            Self::WorkloadNotFound => "workload-404",
            Self::WorkloadIsAnother => "workload-is-another-cluster",
            Self::SecretGone => "secret-gone",
            Self::ProviderKindGone => "provider-kind-gone",
            Self::ProviderStuck => "provider-stuck",
            Self::ClusterPaused => "capi-paused-by-cluster",
            Self::MachinePaused => "capi-paused-by-machine",
            Self::Impaired(Impairment::ClusterApi) => "capi-stopped",
            Self::Impaired(Impairment::MachinePatches) => "capi-webhook-refuses",
            Self::Impaired(Impairment::MachinePatchesHang) => "capi-webhook-hangs",
            Self::Impaired(Impairment::StatusTooLarge) => "status-too-large",
            Self::Impaired(Impairment::StatusInvalid) => "status-invalid",
            Self::Impaired(Impairment::StatusForbidden) => "status-forbidden",
            Self::Impaired(Impairment::StatusHangs) => "status-hangs",
            Self::Impaired(Impairment::EventsHang) => "events-hang",
            Self::Impaired(Impairment::Events) => "events-refused",
            Self::Impaired(Impairment::Leases) => "leases-refused",
            Self::NodeGone => "node-gone",
            Self::NodeNotReady => "node-not-ready",
            Self::NodeReplaced => "node-replaced",
            Self::PodsStuck => "pods-stuck",
            Self::PodsWithFinalizers => "pods-with-finalizers",
            Self::TwoHundredPods => "two-hundred-pods",
            Self::Impaired(Impairment::SlowManagement) => "management-slow",
        })
    }
}

/// The names of the pods that are not like others.
fn pods() -> impl Iterator<Item = String> {
    (0..PODS).map(|number| format!("stuck-{number}"))
}

fn definition() -> String {
    format!("{}.{}", INFRASTRUCTURE.plural, INFRASTRUCTURE.group)
}

fn paused(is_paused: bool) -> Value {
    json!({"spec": {"paused": is_paused}})
}

fn annotated(value: &Value) -> Value {
    json!({"metadata": {"annotations": {CAPI_PAUSED: value}}})
}

/// Puts a kubeconfig into the Secret.
async fn store(env: &dyn Environment, secret: &str, text: &Value) -> anyhow::Result<()> {
    env.patch(SECRET, secret, json!({"stringData": {"value": text}})).await.map(drop)
}

/// An object in the form in which it can be created again.
fn remade(before: &Value) -> Value {
    let mut object = before.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let metadata = &before["metadata"];
    object["metadata"] = json!({
        "name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"],
    });
    object
}

/// Treats 404 as success: the object is gone already.
fn gone_is_fine(deleted: kube::Result<()>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
