//! The check that the CRD in the cluster has all fields of the status.
//!
//! The CRD of `ScheduledMachine` is read at the start, and again until it fits. Until then nothing is written: a status field
//! that the API server drops would be written again and again, and a reclaim would be forgotten half way. While the CRD is
//! missing or cannot be read, the watches run all the same, so that other problems show as well.

use crate::health::{Findings, Health};
use crate::{RunError, Settings, run};
use five_spot_cluster::Connection;
use five_spot_cluster::preflight::{CrdFit, definition};
use five_spot_cluster::transport::http::WriteGuard;
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// The time to wait for the first answer. A server that hangs may answer later.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// The pause between two reads of the CRD: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The state of the CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fitness {
    /// Not known yet.
    Unknown,
    /// The CRD is not installed, or not in this version.
    Missing,
    /// It has all fields of the status.
    Fits,
    /// It lacks fields of the status.
    Unfit,
}

/// Permits writes once the CRD is known to fit.
struct CrdGuard(watch::Receiver<Fitness>);

impl WriteGuard for CrdGuard {
    fn check(&self) -> Result<(), &'static str> {
        if *self.0.borrow() == Fitness::Fits {
            Ok(())
        } else {
            Err("the CRD scheduledmachines.5spot.finos.org is not known to fit this program")
        }
    }
}

/// Runs the controller whenever the CRD permits it.
pub(super) async fn run_while_crd_fits(
    connection: Connection,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (state, mut fitness) = watch::channel(Fitness::Unknown);
    let asking = ask(connection.management()?, settings.health.clone(), state);
    let ends = stop.clone();
    tokio::spawn(async move { ends.run_until_cancelled(asking).await });
    let connection = connection.with_write_guard(Arc::new(CrdGuard(fitness.clone())));
    let first = async {
        // A late answer is handled below.
        let _ = tokio::time::timeout(FIRST_ANSWER, until(&mut fitness, |now| now != Fitness::Unknown)).await;
    };
    if stop.run_until_cancelled(first).await.is_none() {
        return Ok(());
    }
    loop {
        let fits = until(&mut fitness, |now| now != Fitness::Unfit);
        if stop.run_until_cancelled(fits).await.is_none() {
            return Ok(());
        }
        let may_write = *fitness.borrow() == Fitness::Fits;
        let turn = stop.child_token();
        let mut running = std::pin::pin!(run(connection.clone(), settings.clone(), turn.clone()));
        tokio::select! {
            ended = &mut running => return ended,
            // Writes that were refused are not remembered: a fresh start repeats them.
            () = until(&mut fitness, |now| now == Fitness::Unfit || (now == Fitness::Fits && !may_write)) => turn.cancel(),
        }
        running.await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        info!("The CRD has changed; restarting the controller");
    }
}

/// Waits until the state is as wanted; forever if it cannot change any more.
async fn until(fitness: &mut watch::Receiver<Fitness>, wanted: impl Fn(Fitness) -> bool) {
    if fitness.wait_for(|now| wanted(*now)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Reads the CRD until it fits, and reports what is wrong with it until then.
async fn ask(client: Client, health: Arc<Health>, state: watch::Sender<Fitness>) {
    let mut pause = PAUSE.0;
    loop {
        match definition(&client).await {
            Ok(definition) => {
                let is_new = health.examined("definition", &findings(&definition));
                match &definition {
                    CrdFit::Fits(_) => {
                        if is_new && !definition.to_string().is_empty() {
                            warn!("{definition}");
                        }
                        state.send_replace(Fitness::Fits);
                        return;
                    }
                    CrdFit::TooOld(_) => state.send_replace(Fitness::Unfit),
                    CrdFit::OtherVersions(_) | CrdFit::Absent => state.send_replace(Fitness::Missing),
                };
                if is_new {
                    warn!("{definition}");
                }
            }
            // The schema cannot be read, which is no reason not to work. Credentials that are refused (401) may be replaced.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 406) => {
                warn!(error = status.message, "failed to read the schema of the CRD; assuming that it fits");
                state.send_replace(Fitness::Fits);
                return;
            }
            Err(error) => debug!(%error, "failed to read the CRD; retrying"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

fn findings(definition: &CrdFit) -> Findings {
    let said = vec![definition.to_string()];
    match definition {
        CrdFit::Fits(_) => Findings {
            remarks: said.into_iter().filter(|text| !text.is_empty()).collect(),
            ..Findings::default()
        },
        CrdFit::TooOld(_) | CrdFit::OtherVersions(_) | CrdFit::Absent => {
            Findings { obstacles: said, ..Findings::default() }
        }
    }
}
