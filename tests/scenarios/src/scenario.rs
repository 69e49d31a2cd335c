//! A scenario: what happens, and how it should end.

use crate::environment::Environment;
use futures::future::BoxFuture;
use std::time::Duration;

/// The expected end of a scenario's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The name of the `ScheduledMachine`.
    pub object: String,
    /// Its phase; nothing if the object should be gone.
    pub phase: Option<&'static str>,
    /// The number of Machines created for it.
    pub made: usize,
    /// The number of them that are gone.
    pub removed: usize,
    /// True if a Machine stays on request although the object is gone.
    pub orphaned: bool,
    /// True if the Cluster is removed as well: then Cluster API leaves Nodes behind.
    pub without_cluster: bool,
    /// True if one physical machine was lent twice on purpose.
    pub doubled: bool,
    /// True if an object had to be released before its claim.
    pub leaves_claim: bool,
}

impl Ending {
    /// The object is in a phase.
    pub fn phase(object: &str, phase: &'static str) -> Self {
        Self {
            object: object.to_owned(),
            phase: Some(phase),
            made: 0,
            removed: 0,
            orphaned: false,
            without_cluster: false,
            doubled: false,
            leaves_claim: false,
        }
    }

    /// The object is gone.
    pub fn gone(object: &str) -> Self {
        Self {
            object: object.to_owned(),
            phase: None,
            made: 0,
            removed: 0,
            orphaned: false,
            without_cluster: false,
            doubled: false,
            leaves_claim: false,
        }
    }

    /// This many Machines were made, and this many of them are gone.
    #[must_use]
    pub fn machines(self, made: usize, removed: usize) -> Self {
        Self { made, removed, ..self }
    }

    /// The Cluster is removed as well.
    #[must_use]
    pub fn without_cluster(self) -> Self {
        Self { without_cluster: true, ..self }
    }

    /// The object had to be released before its machine was returned, so its claim stays.
    #[must_use]
    pub fn leaves_claim(self) -> Self {
        Self { leaves_claim: true, ..self }
    }

    /// One physical machine was lent twice.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { doubled: true, ..self }
    }

    /// The Machine stays although the object is gone.
    #[must_use]
    pub fn orphaned(self) -> Self {
        Self { orphaned: true, ..self }
    }
}

/// The environments in which a scenario can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any.
    Anything,
    /// One in which Nodes are in a separate cluster.
    TwoClusters,
    /// One in which minutes cost nothing.
    VirtualTime,
    /// One without other tests: the scenario disables what all of them need.
    ExclusiveEnvironment,
    /// One with the real Cluster API, whose Clusters wait for their Machines.
    RealClusterApi,
    /// One in which several controllers run.
    SeveralControllers,
}

/// The controllers that run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// One.
    One,
    /// So many, of which one leads.
    Replicas(u32),
    /// So many, which share the objects.
    Shards(u32),
}

/// The function that runs a scenario.
pub type ScenarioFn = for<'a> fn(&'a dyn Environment) -> BoxFuture<'a, anyhow::Result<Ending>>;

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name.
    pub name: &'static str,
    /// The function that runs it.
    pub run: ScenarioFn,
    /// The environments in which it can be run.
    pub needs: Needs,
    /// The time limit in virtual time from its last deliberate step to its end.
    pub within: Duration,
    /// True if it has a race: two runs may end differently.
    pub is_race: bool,
    /// The controllers. More than one run in the in-memory environment only.
    pub controllers: Controllers,
}

impl Scenario {
    /// A scenario for any environment that ends in time.
    pub const fn new(name: &'static str, run: ScenarioFn, within: Duration) -> Self {
        let (needs, controllers) = (Needs::Anything, Controllers::One);
        Self { name, run, needs, within, is_race: false, controllers }
    }

    /// The same with several controllers.
    #[must_use]
    pub const fn with(self, controllers: Controllers) -> Self {
        Self { controllers, needs: Needs::SeveralControllers, ..self }
    }

    /// The same with an open end.
    #[must_use]
    pub const fn race(self) -> Self {
        Self { is_race: true, ..self }
    }

    /// The same for certain environments only.
    #[must_use]
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }
}

/// Lists scenarios: functions of an environment, each called like its function, with the seconds of virtual time in which it has
/// to end after its last deliberate step.
macro_rules! scenarios {
    ($($name:ident $(: $needs:ident)? => $seconds:literal),* $(,)?) => {
        vec![$(
            $crate::scenario::Scenario::new(
                stringify!($name),
                |env| Box::pin($name(env)),
                std::time::Duration::from_secs($seconds),
            )
            $(.needs($crate::scenario::Needs::$needs))?
        ),*]
    };
}
pub(crate) use scenarios;
