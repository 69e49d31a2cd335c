//! Asks whether the storage behind the API server answers, when nothing has shown it for a while.
//!
//! An API server whose etcd hangs keeps its watches open and answers pings, so a controller with nothing to do would stay
//! ready for as long as it has nothing to do. Events, renewals of a Lease and every other write show that the storage
//! answers; with an election there is one every two seconds, for standbys too, which watch the Lease. Without any of them
//! the API server's own check is requested, but only when someone requests `/ready`: an idle controller sends nothing.

use crate::health::{Findings, Health};
use five_spot_cluster::transport::http::Transport;
use http::Request;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The time after which the storage is checked if nothing has shown that it answers. With the interval of a readiness probe,
/// [`REPEATED_FOR`] and a check that fails after two seconds it is less than a minute.
const SILENCE: Duration = Duration::from_secs(40);

/// The time limit of one request. The API server gives its etcd two seconds.
const DEADLINE: Duration = Duration::from_secs(10);

/// The time for which the API server may repeat the last result of its check instead of asking etcd again: it asks at most
/// every two seconds. A good result counts only if it is still good after this time.
const REPEATED_FOR: Duration = Duration::from_secs(3);

/// The time between a failed check and the next one.
const AGAIN: Duration = Duration::from_secs(5);

/// Examines the storage for as long as it is polled.
pub(super) async fn examine(client: Client, transport: Transport, health: Arc<Health>) {
    let mut is_failing = false;
    loop {
        let silence = transport.storage_silence();
        if silence < SILENCE {
            is_failing = false;
            report(&health, None);
            sleep(SILENCE.saturating_sub(silence)).await;
            continue;
        }
        if !is_failing {
            health.readiness_requested().await;
            if transport.storage_silence() < SILENCE {
                continue;
            }
        }
        let problem = check(&client).await.err();
        is_failing = problem.is_some();
        report(&health, problem);
        if is_failing {
            sleep(AGAIN).await;
        } else {
            transport.note_storage_checked();
        }
    }
}

/// Checks the storage. A good result may be an old one, so it is verified.
async fn check(client: &Client) -> Result<(), String> {
    request_readyz(client).await?;
    sleep(REPEATED_FOR).await;
    request_readyz(client).await
}

/// Requests the API server's own check, which includes its storage. Every authenticated user may do so. An answer that shows
/// nothing, such as that of a server without such a check, is no problem.
async fn request_readyz(client: &Client) -> Result<(), String> {
    let request = Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
    match timeout(DEADLINE, client.request_text(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code < 500 => Ok(()),
        Ok(Err(kube::Error::Api(status))) => Err(format!("GET /readyz answers HTTP {}", status.code)),
        Ok(Err(error)) => Err(format!("GET /readyz: {error}")),
        Err(_) => Err(format!("GET /readyz: no answer within {} s", DEADLINE.as_secs())),
    }
}

fn report(health: &Health, problem: Option<String>) {
    let obstacles: Vec<String> = problem
        .iter()
        .map(|problem| format!("the API server or its storage does not answer: {problem}"))
        .collect();
    if !health.examined("storage", &Findings { obstacles, ..Findings::default() }) {
        return;
    }
    if let Some(error) = problem {
        warn!(error, "The API server or its storage does not answer");
    } else {
        info!("The API server and its storage answer again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Response, StatusCode};
    use kube::client::Body;
    use std::convert::Infallible;
    use std::sync::Mutex;
    use tokio::time::Instant;
    use tower::service_fn;

    /// The seconds at which the storage was requested, and the obstacles after `watched`, if the API server gives `answers`
    /// one after the other, the last one again and again, and `/ready` is requested every ten seconds.
    async fn watch_for(watched: Duration, answers: &'static [u16]) -> (Vec<u64>, Vec<String>) {
        let (began, requests) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let seen = requests.clone();
        let server = service_fn(move |_: Request<Body>| {
            let mut seen = seen.lock().expect("no panic");
            let status = answers[seen.len().min(answers.len() - 1)];
            seen.push(began.elapsed().as_secs());
            let status = StatusCode::from_u16(status).expect("a status");
            let response = Response::builder().status(status).body(Body::empty()).expect("a response");
            async move { Ok::<_, Infallible>(response) }
        });
        let client = Client::new(server, "default");
        let health = Arc::new(Health::default());
        let probing = async {
            loop {
                sleep(Duration::from_secs(10)).await;
                health.note_readiness_request();
            }
        };
        let examining = examine(client, Transport::new("test"), health.clone());
        let _ = timeout(watched, async { tokio::join!(probing, examining) }).await;
        let mut obstacles = health.obstacles();
        obstacles.retain(|obstacle| obstacle.contains("storage"));
        (requests.lock().expect("no panic").clone(), obstacles)
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_result_that_is_repeated_from_before_is_not_believed() {
        let (requests, obstacles) = watch_for(Duration::from_secs(50), &[200, 500]).await;
        assert_eq!(requests, [40, 43, 48], "at once, after the API server asks etcd again, and again");
        assert_eq!(
            obstacles,
            ["the API server or its storage does not answer: GET /readyz answers HTTP 500"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_storage_that_answers_is_asked_twice_and_then_left_alone() {
        let (requests, obstacles) = watch_for(Duration::from_secs(95), &[200]).await;
        // 40 s after the check: `/ready` was requested meanwhile.
        assert_eq!((requests, obstacles), (vec![40, 43, 83, 86], Vec::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn it_recovers_when_the_storage_does() {
        let (_, obstacles) = watch_for(Duration::from_mins(1), &[200, 500, 200]).await;
        assert_eq!(obstacles, Vec::<String>::new());
    }
}
