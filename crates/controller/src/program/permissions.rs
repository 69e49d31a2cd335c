//! The check of the controller's permissions: at the start, after every refusal, and until all are granted.

use crate::health::{Findings, Health};
use crate::metrics::Metrics;
use five_spot_cluster::preflight::{Permission, for_claims, refused, required};
use five_spot_cluster::{Exchange, RequestObserver};
use futures::FutureExt;
use http::StatusCode;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tracing::{debug, info, warn};

/// The first pause between two checks while a permission is missing.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause while the controller is not ready because of it: someone waits for it to start.
const LONGEST_PAUSE_UNREADY: Duration = Duration::from_mins(1);

/// The longest pause while the controller works without it. Nobody may ever grant it, and an idle controller should send next
/// to nothing.
const LONGEST_PAUSE_READY: Duration = Duration::from_mins(5);

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

/// Checks the permissions for as long as it is polled: all of them at the start and after a refusal, and otherwise those that
/// were missing at the last check.
pub(super) async fn examine(
    client: Client,
    namespaces: Vec<String>,
    controller_namespace: String,
    health: Arc<Health>,
    refusal: Arc<Notify>,
) {
    let mut wanted = required(&namespaces);
    wanted.extend(for_claims(&controller_namespace));
    let (mut asked, mut pause, mut after_refusal) = (wanted.clone(), FIRST_PAUSE, AFTER_REFUSAL.0);
    loop {
        let mut longest_pause = LONGEST_PAUSE_UNREADY;
        match refused(&client, &asked).await {
            Ok(missing) => {
                let findings = findings(&missing);
                if health.examined("permissions", &findings) {
                    log_missing(&missing);
                }
                if missing.is_empty() {
                    refusal.notified().await;
                    tokio::time::sleep(after_refusal).await;
                    after_refusal = (after_refusal * 2).min(AFTER_REFUSAL.1);
                    (asked, pause) = (wanted.clone(), FIRST_PAUSE);
                    continue;
                }
                if findings.obstacles.is_empty() {
                    longest_pause = LONGEST_PAUSE_READY;
                }
                asked = missing;
            }
            // The server does not serve access reviews.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405 | 501) => return,
            Err(error) => debug!(%error, "failed to check the permissions; retrying"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest_pause);
        if refusal.notified().now_or_never().is_some() {
            asked.clone_from(&wanted);
        }
    }
}

/// Without Leases the controller works, but nothing prevents a machine from being lent twice.
fn findings(missing: &[Permission]) -> Findings {
    let denied =
        |permission: &&Permission| format!("not allowed to {permission}: grant it as in deploy/rbac");
    let unprotected = |permission: &&Permission| {
        format!("{}; until then nothing prevents a machine from being lent twice", denied(permission))
    };
    let is_claim = |permission: &&Permission| permission.resource == "leases";
    Findings {
        obstacles: missing
            .iter()
            .filter(|permission| !is_claim(permission))
            .map(|one| denied(&one))
            .collect(),
        remarks: missing.iter().filter(is_claim).map(|one| unprotected(&one)).collect(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Mutex;
    use tokio::time::{Instant, timeout};
    use tower::service_fn;

    const HOUR: Duration = Duration::from_hours(1);

    /// The seconds at which access reviews were requested within an hour, and the last remarks and obstacles, if the permissions
    /// to do `denied` with a resource are missing until `granted_after`.
    async fn reviews(
        denied: &'static [(&'static str, &'static str)],
        granted_after: Duration,
    ) -> (Vec<u64>, Vec<String>, Vec<String>) {
        let (began, requests) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let seen = requests.clone();
        let server = service_fn(move |request: Request<Body>| {
            seen.lock().expect("no panic").push(began.elapsed().as_secs());
            async move {
                let body = request.into_body().collect_bytes().await.expect("a body");
                let mut review: Value = serde_json::from_slice(&body).expect("a review");
                let attributes = &review["spec"]["resourceAttributes"];
                let is_denied = |(verb, resource): &(&str, &str)| {
                    attributes["verb"] == *verb && attributes["resource"] == *resource
                };
                let is_allowed = began.elapsed() >= granted_after || !denied.iter().any(is_denied);
                review["status"] = json!({"allowed": is_allowed});
                Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
            }
        });
        let health = Arc::new(Health::default());
        let (client, refusal) = (Client::new(server, "default"), Arc::default());
        let examining = examine(client, Vec::new(), "5spot-system".to_owned(), health.clone(), refusal);
        assert!(timeout(HOUR, examining).await.is_err(), "it goes on for as long as it is polled");
        let requests = requests.lock().expect("no panic").clone();
        let about =
            |found: Vec<String>| found.into_iter().filter(|one| one.contains("not allowed")).collect();
        (requests, about(health.remarks()), about(health.obstacles()))
    }

    /// The number of permissions that are checked at the start.
    fn all() -> usize {
        required(&[]).len() + for_claims("5spot-system").len()
    }

    #[tokio::test(start_paused = true)]
    async fn granted_permissions_are_checked_once() {
        let (requests, remarks, obstacles) = reviews(&[], HOUR).await;
        assert_eq!((requests, remarks.len(), obstacles.len()), (vec![0; all()], 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_claim_permission_is_checked_ever_more_rarely() {
        let (requests, remarks, obstacles) = reviews(&[("delete", "leases")], HOUR).await;
        assert_eq!((remarks.len(), obstacles.len()), (1, 0), "the controller works without it");
        let again = &requests[all()..];
        assert_eq!(again[..9], [2, 6, 14, 30, 62, 126, 254, 510, 810], "one review each");
        assert!(again.windows(2).skip(8).all(|pair| pair[1] - pair[0] == 300), "{again:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_vital_permission_is_checked_every_minute() {
        let denied = &[("list", "machines"), ("delete", "leases")];
        let (requests, remarks, obstacles) = reviews(denied, Duration::from_mins(30)).await;
        assert_eq!((remarks.len(), obstacles.len()), (0, 0), "granted");
        let last = *requests.last().expect("requests");
        assert!((1800..1860).contains(&last), "noticed after {last} s, and nothing since");
    }
}
