//! Which objects the provider looks at, and how far each is.

use super::super::agenda::{Actor, Next};
use super::super::kinds::{BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, CORE_GROUP, INFRASTRUCTURE_GROUP, Place};
use super::super::scenario::Scenario;
use super::super::stage::{Change, Stage};
use super::super::stopwatch::Stopwatch;
use super::role::Role;
use super::steps;
use five_spot_apiserver::clock::Clock;

/// A step that takes its time.
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
    pub(super) scenario: Scenario,
    /// How far each step of each object is.
    pub(super) steps: Stopwatch<(String, Step)>,
}

impl Provider {
    pub(in super::super) fn new(clock: Clock, scenario: Scenario) -> Self {
        Self { clock, scenario, steps: Stopwatch::default() }
    }

    /// Which custom kinds it watches.
    pub(in super::super) fn wants(group: &str, kind: &str) -> bool {
        match group {
            CORE_GROUP => kind == "Machine",
            BOOTSTRAP_GROUP | INFRASTRUCTURE_GROUP | CONTROL_PLANE_GROUP => true,
            _ => false,
        }
    }
}

impl Actor for Provider {
    fn concerned(&self, change: &Change, stage: &Stage) -> Vec<Place> {
        if Role::of(&change.place.kind).is_some() {
            return vec![change.place.clone()];
        }
        // A machine is prepared once its bootstrap data are there, which its Machine says.
        let Some(machine) = change.after.as_ref().filter(|_| change.place.kind.is(CORE_GROUP, "Machine"))
        else {
            return Vec::new();
        };
        let reference = &machine.data["spec"]["infrastructureRef"];
        let (Some(kind), Some(name)) = (reference["kind"].as_str(), reference["name"].as_str()) else {
            return Vec::new();
        };
        let kind = stage.kind(INFRASTRUCTURE_GROUP, kind);
        kind.map(|kind| kind.place(&change.place.namespace, name)).into_iter().collect()
    }

    async fn attend(&mut self, place: &Place, stage: &mut Stage) -> kube::Result<Next> {
        let (Some(role), Some(object)) = (Role::of(&place.kind), stage.get(place)) else {
            return Ok(None);
        };
        match role {
            Role::Bootstrap => steps::bootstrap(self, place, &object, stage).await,
            Role::Machine => steps::machine(self, place, &object, stage).await,
            Role::Cluster => steps::cluster(place, stage).await,
            Role::ControlPlane => steps::control_plane(place, &object, stage).await,
        }
    }
}
