//! The objects that are made for a `ScheduledMachine`, as we would apply them.

mod agent;
mod machine;
mod provider;
#[cfg(test)]
mod tests;

pub(crate) use agent::agent_config;
pub(crate) use machine::{machine, node_deletion_timeout};
pub(crate) use provider::{bootstrap, infrastructure};

use crate::transport::kinds::CapiVersion;
use five_spot_api::ScheduledMachineSpec;
use five_spot_api::names::{self, label};
use five_spot_core::ValidSpec;
use five_spot_core::world::Uid;
use serde_json::{Map, Value, json};

/// Everything that rendering needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a Uid,
    /// The spec as it was written.
    pub(crate) raw: &'a ScheduledMachineSpec,
    /// The parsed spec.
    pub(crate) spec: &'a ValidSpec,
    /// The version of Cluster API that the management cluster serves.
    pub(crate) capi_version: CapiVersion,
}

impl Source<'_> {
    fn labels(&self) -> Map<String, Value> {
        let labels =
            [(label::SCHEDULED_MACHINE, self.name), (label::CLUSTER_NAME, self.spec.cluster_name.as_str())];
        labels.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect()
    }

    /// The reference to the `ScheduledMachine`.
    fn owner(&self, is_controller: bool) -> Value {
        let mut owner = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
            "kind": names::KIND,
            "name": self.name,
            "uid": self.uid.as_str(),
        });
        if is_controller {
            owner["controller"] = Value::Bool(true);
        }
        owner
    }
}

fn texts<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
}
