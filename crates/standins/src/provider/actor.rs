//! The objects of the provider, and their progress.

use super::super::context::{ActorContext, Change};
use super::super::kinds::{
    BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP, INFRASTRUCTURE_GROUP, ObjectKey,
};
use super::super::settings::StandInSettings;
use super::super::stopwatch::Stopwatch;
use super::super::work_queue::{Actor, Next};
use super::role::Role;
use super::steps;
use five_spot_apiserver::clock::Clock;

/// A step with a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Bootstrap,
    Provision,
    Join,
    Release,
}

/// The stand-in for infrastructure and bootstrap providers.
#[derive(Debug)]
pub(in super::super) struct Provider {
    pub(super) clock: Clock,
    pub(super) settings: StandInSettings,
    /// The progress of each step of each object.
    pub(super) steps: Stopwatch<(String, Step)>,
}

impl Provider {
    pub(in super::super) fn new(clock: Clock, settings: StandInSettings) -> Self {
        Self { clock, settings, steps: Stopwatch::default() }
    }

    /// The custom kinds to watch.
    pub(in super::super) fn wants(group: &str, kind: &str) -> bool {
        match group {
            CORE_GROUP => kind == "Machine",
            BOOTSTRAP_GROUP | INFRASTRUCTURE_GROUP | CONTROL_PLANE_GROUP => true,
            _ => false,
        }
    }
}

impl Actor for Provider {
    fn concerned(&self, change: &Change, context: &ActorContext) -> Vec<ObjectKey> {
        if Role::of(&change.key.kind).is_some() {
            return vec![change.key.clone()];
        }
        // A machine is provisioned when the bootstrap data are ready, which is in the spec of the Machine.
        let Some(machine) = change.after.as_ref().filter(|_| change.key.kind.is(CORE_GROUP, "Machine"))
        else {
            return Vec::new();
        };
        let reference = &machine.data["spec"]["infrastructureRef"];
        let (Some(kind), Some(name)) = (reference["kind"].as_str(), reference["name"].as_str()) else {
            return Vec::new();
        };
        let kind = context.kind(INFRASTRUCTURE_GROUP, kind);
        kind.map(|kind| kind.key(&change.key.namespace, name)).into_iter().collect()
    }

    async fn reconcile(&mut self, key: &ObjectKey, context: &mut ActorContext) -> kube::Result<Next> {
        let (Some(role), Some(object)) = (Role::of(&key.kind), context.get(key)) else {
            return Ok(None);
        };
        match role {
            Role::Bootstrap => steps::bootstrap(self, key, &object, context).await,
            Role::Machine => steps::machine(self, key, &object, context).await,
            Role::Cluster => steps::cluster(key, context).await,
            Role::ControlPlane => steps::control_plane(key, &object, context).await,
        }
    }
}
