//! How the watches of the management cluster stand, for those who ask whether the controller is ready and alive.

use crate::cache::fleet::{Fleet, Inner};
use crate::cache::own_namespace::watch_path;
use crate::cache::store::{Condition, Scope};
use crate::transport::http::Protocol;
use crate::transport::kinds::{capi_resource, our_resource};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use std::time::Duration;

/// A watch of the management cluster that every decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementWatch {
    /// What is watched.
    pub what: String,
    /// Why what it shows cannot be relied upon yet.
    pub unsynced: Option<String>,
    /// It is open, or was until a moment ago.
    pub connected: bool,
    /// How long ago anything was tried or heard last; absent if nothing ever was.
    pub idle: Option<Duration>,
}

impl Fleet {
    /// The protocol of the latest connection to the management cluster.
    pub fn management_protocol(&self) -> Option<Protocol> {
        self.inner.connection.door().protocol()
    }

    /// How the watches stand that every decision needs.
    pub fn management_watches(&self) -> Vec<ManagementWatch> {
        let inner = &self.inner;
        let mut watches = Vec::new();
        for scope in inner.scopes() {
            let within = |what: &str| {
                scope.as_ref().map_or_else(|| what.to_owned(), |name| format!("{what} in {name}"))
            };
            watches.push(inner.namespace_watch(scope));
            let objects = inner.api_in(scope, &our_resource());
            let condition = inner.objects.condition();
            watches.push(inner.watch_at(&within("scheduledmachines"), objects.resource_url(), &condition));
            for (kind, plural, condition) in [
                ("Machine", "machines", inner.machines.condition()),
                ("Cluster", "clusters", inner.clusters.condition()),
            ] {
                let url =
                    inner.capi().map(|version| inner.api_in(scope, &capi_resource(version, kind, plural)));
                watches.push(match url {
                    Some(api) => inner.watch_at(&within(plural), api.resource_url(), &condition),
                    // There is nothing to watch until Cluster API has been found, which is tried again and again.
                    None => ManagementWatch {
                        what: within(plural),
                        unsynced: Some(unsynced(&condition).unwrap_or_default()),
                        connected: false,
                        idle: None,
                    },
                });
            }
        }
        watches
    }
}

impl Inner {
    fn namespace_watch(&self, scope: &Scope) -> ManagementWatch {
        let condition = self.namespaces.condition();
        if let Some(name) = scope {
            return self.watch_at(&format!("annotations of namespace {name}"), &watch_path(name), &condition);
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        self.watch_at("namespaces", api.resource_url(), &condition)
    }

    fn watch_at(&self, what: &str, path: &str, condition: &Condition) -> ManagementWatch {
        let state = self.connection.door().watch_of(path);
        ManagementWatch {
            what: what.to_owned(),
            unsynced: unsynced(condition),
            connected: state.connected,
            idle: state.idle,
        }
    }
}

fn unsynced(condition: &Condition) -> Option<String> {
    match condition {
        Condition::Filled => None,
        Condition::Filling => Some("the first list has not come yet".to_owned()),
        Condition::Failing(failure) => Some(failure.message.clone()),
    }
}
