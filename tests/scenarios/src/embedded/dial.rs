//! The way into the workload cluster: a kubeconfig whose token has to be the current one.

use super::line::Line;
use five_spot_cluster::{Dial, DialError, Raw, Route};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::config::Kubeconfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of the workload cluster.
const SERVER: &str = "https://workload.sandbox.invalid:6443";

/// The credentials that are good at the moment.
#[derive(Debug, Default)]
pub(super) struct Keys {
    current: AtomicU32,
}

impl Keys {
    /// From now on only new credentials are good.
    pub(super) fn change(&self) {
        self.current.fetch_add(1, Ordering::SeqCst);
    }

    /// A kubeconfig with credentials that are good at the moment.
    pub(super) fn kubeconfig(&self) -> String {
        let token = self.token();
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: w\n\
             clusters: [{{name: w, cluster: {{server: '{SERVER}'}}}}]\n\
             users: [{{name: w, user: {{token: {token}}}}}]\n\
             contexts: [{{name: w, context: {{cluster: w, user: w}}}}]\n"
        )
    }

    fn token(&self) -> String {
        format!("token-{}", self.current.load(Ordering::SeqCst))
    }
}

/// Finds the workload cluster by its address.
pub(super) struct Dialer {
    pub(super) workload: Line,
    pub(super) keys: Arc<Keys>,
}

impl Dial for Dialer {
    fn dial(&self, kubeconfig: Kubeconfig) -> BoxFuture<'_, Result<Route, DialError>> {
        let server = kubeconfig.clusters.first().and_then(|named| named.cluster.as_ref()?.server.clone());
        let found = match server {
            Some(server) if server == SERVER => {
                let user = kubeconfig.auth_infos.first().and_then(|named| named.auth_info.clone());
                // A secret is made to be hard to print and to compare; here it is neither.
                let token = serde_json::to_value(user).unwrap_or_default()["token"].clone();
                let keys = self.keys.clone();
                let is_valid = Arc::new(move || token == keys.token().as_str());
                Ok(Route::Embedded(Raw::new(Line { is_valid, ..self.workload.clone() })))
            }
            server => Err(DialError::Unknown(server.unwrap_or_default())),
        };
        futures::future::ready(found).boxed()
    }
}
