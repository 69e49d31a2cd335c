//! What is broken beside an emergency.

use crate::kinds::{CLUSTER, DEFINITION, INFRASTRUCTURE, MACHINE, NODE, POD, SECRET};
use crate::plays::nodes::replace;
use crate::subject::{CLUSTER_NAME, Subject, condition};
use crate::surroundings::EXIT_DELAY_ANNOTATION;
use crate::world::{ApiServer, Impairment, World, WrongServer};
use anyhow::Context as _;
use five_spot_api::names::annotation::CAPI_PAUSED;
use five_spot_standins::{Behaviour, Conduct, STOPS_AFTER_ANNOTATION};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::fmt;

/// A fault that lasts until it is lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hindrance {
    /// The API server of the workload cluster takes connections and does not answer.
    WorkloadHangs,
    /// Nobody listens there.
    WorkloadRefused,
    /// It does not know the credentials any more.
    WorkloadUnauthorized,
    /// A web server answers in its place: `404 page not found`.
    WorkloadNotFound,
    /// The Secret leads into another cluster.
    WorkloadIsAnother,
    /// The Secret is gone.
    SecretGone,
    /// The CRD of the infrastructure object was deleted.
    ProviderKindGone,
    /// The provider never gives the machine back.
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
    /// Pods have been terminating for long, and go on doing so.
    PodsStuck,
    /// Pods have finalizers that nobody removes.
    PodsWithFinalizers,
    /// There are two hundred pods on the node.
    TwoHundredPods,
    /// Something around the controller does not work.
    Impaired(Impairment),
}

/// What it takes to lift a hindrance.
#[derive(Debug)]
pub(super) enum Lift {
    /// Nothing.
    Nothing,
    /// An object that was deleted has to be made again.
    Restore(Value),
    /// The Secret has to hold this kubeconfig.
    Kubeconfig(Value),
}

/// The pods that take part: enough for several to be on their way at once.
const PODS: usize = 3;

/// On pods that nobody lets go.
const FINALIZER: &str = "example.org/keep";

impl Hindrance {
    /// Every one.
    pub const ALL: [Self; 24] = [
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
        Self::Impaired(Impairment::StatusTooLarge),
        Self::Impaired(Impairment::StatusInvalid),
        Self::Impaired(Impairment::StatusForbidden),
        Self::Impaired(Impairment::Events),
        Self::NodeGone,
        Self::NodeNotReady,
        Self::NodeReplaced,
        Self::PodsStuck,
        Self::PodsWithFinalizers,
        Self::TwoHundredPods,
        Self::Impaired(Impairment::SlowManagement),
    ];

    /// Whether the controller cannot see or change anything in the workload cluster.
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

    /// Whether a request on the Node could not be seen, so that the fault has to come when it has been seen.
    pub(super) const fn hides_node(self) -> bool {
        self.hides_workload() || matches!(self, Self::NodeGone)
    }

    /// Whether Cluster API's pause holds back everything that is not an emergency.
    pub(super) const fn pauses(self) -> bool {
        matches!(self, Self::ClusterPaused | Self::MachinePaused)
    }

    /// Whether nothing can be written into status.
    pub(super) const fn refuses_status(self) -> bool {
        use Impairment::{StatusForbidden, StatusInvalid, StatusTooLarge};
        matches!(self, Self::Impaired(StatusTooLarge | StatusInvalid | StatusForbidden))
    }

    /// The pods that are on the node before anything happens.
    pub(super) async fn populate(self, world: &dyn World, node: &str) -> anyhow::Result<()> {
        if self == Self::TwoHundredPods {
            return world.pods_on(node, 200, 1).await;
        }
        let differs = if self == Self::PodsStuck {
            json!({
                "metadata": {"annotations": {STOPS_AFTER_ANNOTATION: "3600s", EXIT_DELAY_ANNOTATION: "3600s"}},
                "spec": {"terminationGracePeriodSeconds": 3600},
            })
        } else if self == Self::PodsWithFinalizers {
            json!({"metadata": {"finalizers": [FINALIZER]}})
        } else {
            return world.pods_on(node, PODS, 1).await;
        };
        for name in pods() {
            world.pod_that(node, &name, differs.clone()).await?;
        }
        Ok(())
    }

    /// Lets it begin.
    pub(super) async fn begin(
        self,
        world: &dyn World,
        subject: &Subject<'_>,
        node: &str,
    ) -> anyhow::Result<Lift> {
        let secret = world.kubeconfig_secret().context("there is a Secret")?;
        match self {
            Self::Impaired(impairment) => world.set_impaired(impairment, true).await?,
            Self::WorkloadHangs => world.set_other_line(ApiServer::Silent),
            Self::WorkloadRefused => world.set_other_line(ApiServer::Down),
            Self::WorkloadUnauthorized => {
                // The old credentials are good no more, and nobody has stored the new ones.
                let _ = world.new_kubeconfig().await?;
                return Ok(Lift::Kubeconfig(world.kubeconfig_by_another_line().await?.into()));
            }
            Self::WorkloadNotFound | Self::WorkloadIsAnother => {
                let good = world.kubeconfig_by_another_line().await?.into();
                let server = if self == Self::WorkloadNotFound {
                    WrongServer::NoApi
                } else {
                    WrongServer::OtherCluster
                };
                store(world, &secret, &world.kubeconfig_to(server).await?.into()).await?;
                return Ok(Lift::Kubeconfig(good));
            }
            Self::SecretGone => {
                let before = world.get(SECRET, &secret).await?;
                world.delete(SECRET, &secret).await?;
                return Ok(Lift::Restore(remade(&before)));
            }
            Self::ProviderKindGone => {
                let name = definition();
                let before = world.get(DEFINITION, &name).await?;
                world.delete(DEFINITION, &name).await?;
                world.until_gone(DEFINITION, &name).await?;
                return Ok(Lift::Restore(remade(&before)));
            }
            Self::ProviderStuck => {
                world.provider(Behaviour { release: Conduct::Hangs, ..Behaviour::default() });
            }
            Self::ClusterPaused => drop(world.patch(CLUSTER, CLUSTER_NAME, paused(true)).await?),
            Self::MachinePaused => {
                drop(world.patch(MACHINE, &subject.machine(), annotated(&json!(""))).await?);
            }
            Self::NodeGone => world.delete(NODE, node).await?,
            Self::NodeNotReady => {
                world.silence(node, true).await?;
                let unheard = |node: &Value| condition(node, "Ready")["status"] != "True";
                world.until(NODE, node, "not to be Ready", unheard).await?;
            }
            Self::NodeReplaced => {
                let before = world.get(NODE, node).await?;
                replace(world, &before, &before["spec"]["providerID"]).await?;
            }
            Self::PodsStuck => {
                for name in pods() {
                    world.delete(POD, &name).await?;
                }
            }
            Self::PodsWithFinalizers | Self::TwoHundredPods => {}
        }
        Ok(Lift::Nothing)
    }

    /// Ends it.
    pub(super) async fn end(self, world: &dyn World, node: &str, lift: Lift) -> anyhow::Result<()> {
        let secret = world.kubeconfig_secret().context("there is a Secret")?;
        match lift {
            Lift::Nothing => {}
            Lift::Restore(object) => {
                let kind = if self == Self::SecretGone { SECRET } else { DEFINITION };
                world.create(kind, object).await?;
            }
            Lift::Kubeconfig(text) => store(world, &secret, &text).await?,
        }
        match self {
            Self::Impaired(impairment) => world.set_impaired(impairment, false).await?,
            Self::WorkloadHangs | Self::WorkloadRefused => world.set_other_line(ApiServer::Up),
            Self::ProviderStuck => world.provider(Behaviour::default()),
            Self::ClusterPaused => drop(world.patch(CLUSTER, CLUSTER_NAME, paused(false)).await?),
            Self::MachinePaused => {
                for machine in world.list(MACHINE).await? {
                    let name = machine["metadata"]["name"].as_str().unwrap_or_default();
                    world.patch(MACHINE, name, annotated(&Value::Null)).await?;
                }
            }
            Self::NodeNotReady => {
                if !world.get(NODE, node).await?.is_null() {
                    world.silence(node, false).await?;
                }
            }
            Self::PodsStuck => {
                for name in pods() {
                    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                    gone_is_fine(world.api(POD).delete(&name, &now).await.map(drop))?;
                }
            }
            Self::PodsWithFinalizers => {
                for name in pods() {
                    if !world.get(POD, &name).await?.is_null() {
                        world.patch(POD, &name, json!({"metadata": {"finalizers": null}})).await?;
                    }
                }
            }
            // What was taken away has been put back, or goes with the machine.
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

impl fmt::Display for Hindrance {
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
            Self::Impaired(Impairment::StatusTooLarge) => "status-too-large",
            Self::Impaired(Impairment::StatusInvalid) => "status-invalid",
            Self::Impaired(Impairment::StatusForbidden) => "status-forbidden",
            Self::Impaired(Impairment::Events) => "events-refused",
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
async fn store(world: &dyn World, secret: &str, text: &Value) -> anyhow::Result<()> {
    world.patch(SECRET, secret, json!({"stringData": {"value": text}})).await.map(drop)
}

/// An object as somebody would make it again.
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

/// What is gone need not be deleted.
fn gone_is_fine(deleted: kube::Result<()>) -> kube::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
