//! The check of the controller's permissions: at the start, after every refusal, and until all are granted.

use crate::health::{Findings, Health};
use crate::metrics::Metrics;
use five_spot_cluster::preflight::{Permission, refused, required};
use five_spot_cluster::{Exchange, RequestObserver};
use http::StatusCode;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tracing::{debug, info, warn};

/// The pause between two checks while a permission is missing: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));

/// The pause before a check after a refusal: the first and the longest. A request that is refused for a reason of its own is
/// refused again and again.
const AFTER_REFUSAL: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(10));

/// Counts every request, and notes refusals.
pub(super) struct RefusalObserver {
    metrics: Arc<Metrics>,
    refused: Arc<Notify>,
}

impl RefusalObserver {
    /// An observer, and the notification of a refusal.
    pub(super) fn new(metrics: Arc<Metrics>) -> (Arc<Self>, Arc<Notify>) {
        let refused = Arc::new(Notify::new());
        (Arc::new(Self { metrics, refused: refused.clone() }), refused)
    }
}

impl RequestObserver for RefusalObserver {
    fn answered(&self, exchange: &Exchange) {
        self.metrics.answered(exchange);
        if exchange.status == Some(StatusCode::FORBIDDEN) {
            self.refused.notify_one();
        }
    }
}

/// Checks the permissions for as long as it is polled.
pub(super) async fn examine(
    client: Client,
    namespaces: Vec<String>,
    health: Arc<Health>,
    refusal: Arc<Notify>,
) {
    let wanted = required(&namespaces);
    let (mut pause, mut after_refusal) = (PAUSE.0, AFTER_REFUSAL.0);
    loop {
        match refused(&client, &wanted).await {
            Ok(missing) => {
                if health.examined("permissions", &findings(&missing)) {
                    log_missing(&missing);
                }
                if missing.is_empty() {
                    refusal.notified().await;
                    tokio::time::sleep(after_refusal).await;
                    after_refusal = (after_refusal * 2).min(AFTER_REFUSAL.1);
                    pause = PAUSE.0;
                    continue;
                }
            }
            // The server does not serve access reviews.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405 | 501) => return,
            Err(error) => debug!(%error, "failed to check the permissions; retrying"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

fn findings(missing: &[Permission]) -> Findings {
    let obstacle =
        |permission: &Permission| format!("not allowed to {permission}: grant it as deploy/rbac does");
    Findings { obstacles: missing.iter().map(obstacle).collect(), ..Findings::default() }
}

fn log_missing(missing: &[Permission]) {
    for permission in missing {
        let Permission { verb, group, namespace, .. } = permission;
        let scope = namespace.as_deref().unwrap_or("all");
        warn!(
            verb,
            group,
            api_resource = permission.what(),
            api_namespace = scope,
            "A permission is missing"
        );
    }
    if missing.is_empty() {
        info!("All permissions are granted");
    }
}
