//! Asks whether the storage behind the API server answers, when nothing has shown it for a while.
//!
//! An API server whose etcd hangs keeps its watches open and answers pings, so a controller with nothing to do would stay
//! ready for as long as it has nothing to do. Events, renewals of a Lease and every other write show that the storage
//! answers; with an election there is one every two seconds, for standbys too, which watch the Lease. Without any of them
//! the API server's own check is requested, but only when somebody requests `/ready`: an idle controller sends nothing.

use crate::health::{Findings, Health};
use five_spot_cluster::transport::http::Transport;
use http::Request;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The time after which the storage is checked if nothing has shown that it answers. With [`DEADLINE`] less than a minute.
const SILENCE: Duration = Duration::from_secs(40);

/// The time limit of the check. The API server gives its etcd two seconds.
const DEADLINE: Duration = Duration::from_secs(10);

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
        // An answer that shows nothing, such as that of a server without such a check, is no reason to ask all the time.
        is_failing = problem.is_some();
        let pause = if is_failing { AGAIN } else { SILENCE };
        report(&health, problem);
        if transport.storage_silence() >= SILENCE {
            sleep(pause).await;
        }
    }
}

async fn check(client: &Client) -> Result<(), String> {
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
