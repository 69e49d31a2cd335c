//! An object and the world around it, as decisions need them.

use crate::cache::workload::WorkloadLink;
use crate::transport::key::ObjectKey;
use five_spot_core::world::World;
use five_spot_core::{Decision, InvalidSpec, ValidSpec, decide, decide_invalid};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An object and its world.
pub struct Observed {
    /// The spec, parsed.
    pub spec: Result<Arc<ValidSpec>, Arc<InvalidSpec>>,
    /// The world that decisions depend on.
    pub world: World,
    /// The field manager that wrote the spec last.
    pub spec_by: Option<String>,
    /// True if an object has not been compared with what we would apply, or if an object that is not ours had one of our
    /// names: only a live read can tell.
    pub unproven: bool,
    /// True if something has not been read yet. Its watch reports when it has; only an emergency does not wait for that.
    pub incomplete: bool,
    /// The version of the object that was read.
    pub(crate) version: String,
    pub(crate) link: Option<Arc<WorkloadLink>>,
    /// The link to the cluster in which the Node may have outlived its Machine.
    pub(crate) former_link: Option<Arc<WorkloadLink>>,
    pub(crate) lookups: Lookups,
}

impl Observed {
    /// Decides what should happen now.
    pub fn decide(&self, now: Timestamp) -> Decision {
        match &self.spec {
            Ok(spec) => decide(spec, &self.world, now),
            Err(spec) => decide_invalid(spec, &self.world, now),
        }
    }
}

/// The objects that have to be read before the pods of a node can be classified for a drain.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    /// The rules of Cluster API that apply to the Machine.
    pub(crate) rules: bool,
    /// The `DaemonSet`s that may no longer exist.
    pub(crate) daemon_sets: BTreeSet<ObjectKey>,
    /// The namespaces whose labels are unknown.
    pub(crate) namespaces: BTreeSet<String>,
}

impl Lookups {
    pub(crate) fn are_needed(&self) -> bool {
        self.rules || !self.daemon_sets.is_empty() || !self.namespaces.is_empty()
    }
}
