//! The status of the watches of the management cluster, for readiness and liveness.

use crate::cache::caches::Caches;
use crate::cache::namespace_watch::watch_path;
use crate::cache::store::{Scope, SyncState};
use crate::transport::http::Protocol;
use crate::transport::kinds::{capi_resource, our_resource};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use std::time::Duration;

/// A watch of the management cluster that every decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementWatch {
    /// The watched objects.
    pub what: String,
    /// The reason for which its cache is not complete yet.
    pub unsynced: Option<String>,
    /// True if it is open, or was until a moment ago.
    pub connected: bool,
    /// The time since the last attempt or event; absent if there was none.
    pub idle: Option<Duration>,
}

/// The protocol of the latest connection to the management cluster.
pub fn management_protocol(caches: &Caches) -> Option<Protocol> {
    caches.connection.transport().protocol()
}

/// The status of the watches that every decision needs.
pub fn management_watches(caches: &Caches) -> Vec<ManagementWatch> {
    let mut watches = Vec::new();
    for scope in &caches.scopes {
        let within =
            |what: &str| scope.as_ref().map_or_else(|| what.to_owned(), |name| format!("{what} in {name}"));
        watches.push(namespace_watch(caches, scope));
        let objects = caches.api_in(scope, &our_resource());
        let state = caches.objects.sync_state();
        watches.push(watch_at(caches, &within("scheduledmachines"), objects.resource_url(), &state));
        for (kind, plural, state) in [
            ("Machine", "machines", caches.machines.sync_state()),
            ("Cluster", "clusters", caches.clusters.sync_state()),
        ] {
            let api =
                caches.capi().map(|version| caches.api_in(scope, &capi_resource(version, kind, plural)));
            watches.push(match api {
                Some(api) => watch_at(caches, &within(plural), api.resource_url(), &state),
                // There is nothing to watch until Cluster API has been found.
                None => ManagementWatch {
                    what: within(plural),
                    unsynced: Some(unsynced(&state).unwrap_or_default()),
                    connected: false,
                    idle: None,
                },
            });
        }
    }
    watches
}

fn namespace_watch(caches: &Caches, scope: &Scope) -> ManagementWatch {
    let state = caches.namespaces.sync_state();
    if let Some(name) = scope {
        return watch_at(caches, &format!("annotations of namespace {name}"), &watch_path(name), &state);
    }
    let api: Api<Namespace> = Api::all(caches.client.clone());
    watch_at(caches, "namespaces", api.resource_url(), &state)
}

fn watch_at(caches: &Caches, what: &str, path: &str, state: &SyncState) -> ManagementWatch {
    let watch = caches.connection.transport().watch_of(path);
    ManagementWatch {
        what: what.to_owned(),
        unsynced: unsynced(state),
        connected: watch.connected,
        idle: watch.idle,
    }
}

fn unsynced(state: &SyncState) -> Option<String> {
    match state {
        SyncState::Synced => None,
        SyncState::Syncing => Some("the first list is not complete".to_owned()),
        SyncState::Failed(failure) => Some(failure.message.clone()),
    }
}
