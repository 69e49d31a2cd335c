//! Works only while the cluster has a place for everything that has to be remembered.
//!
//! The definition of `ScheduledMachine` is asked for at the start, and again and again until it is the right one. Until then
//! nothing is written: a status that is written and not kept would be written again for ever, and a reclaim that is forgotten
//! would be forgotten half done. While there is no definition, or nobody says which, everything is watched all the same, so
//! that whatever else is wrong is known as well.

use crate::health::{Findings, Health};
use crate::{RunError, Settings, run};
use five_spot_cluster::Connection;
use five_spot_cluster::door::Fence;
use five_spot_cluster::preflight::{Definition, definition};
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// How long the first answer is waited for. A server that hangs has time to answer later.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// How long between two questions, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Whether there is a place for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fitness {
    /// Nobody has said yet.
    Unknown,
    /// There is no definition that could fit.
    Missing,
    /// There is.
    Fits,
    /// There is not.
    Unfit,
}

/// Lets writes through once the definition is known to fit.
struct Gate(watch::Receiver<Fitness>);

impl Fence for Gate {
    fn check(&self) -> Result<(), &'static str> {
        if *self.0.borrow() == Fitness::Fits { Ok(()) } else { Err("the definition is not known to fit") }
    }
}

/// Runs the controller whenever the definition does not forbid it.
pub(super) async fn run_while_it_fits(
    connection: Connection,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (told, mut fitness) = watch::channel(Fitness::Unknown);
    let asking = ask(connection.management()?, settings.health.clone(), told);
    let ends = stop.clone();
    tokio::spawn(async move { ends.run_until_cancelled(asking).await });
    let connection = connection.with_fence(Arc::new(Gate(fitness.clone())));
    let first = async {
        // Whoever does not answer in time may do so later.
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
            // What could not be written is not remembered: it begins anew when it can.
            () = until(&mut fitness, |now| now == Fitness::Unfit || (now == Fitness::Fits && !may_write)) => turn.cancel(),
        }
        running.await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        info!("Beginning anew with another definition");
    }
}

/// Waits until the fitness is as wanted; for ever if nobody will say so any more.
async fn until(fitness: &mut watch::Receiver<Fitness>, wanted: impl Fn(Fitness) -> bool) {
    if fitness.wait_for(|now| wanted(*now)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Asks until the definition is the right one, and tells what is wrong with it until then.
async fn ask(client: Client, health: Arc<Health>, told: watch::Sender<Fitness>) {
    let mut pause = PAUSE.0;
    loop {
        match definition(&client).await {
            Ok(definition) => {
                let is_new = health.examined("definition", &findings(&definition));
                match &definition {
                    Definition::Fits(_) => {
                        if is_new && !definition.to_string().is_empty() {
                            warn!("{definition}");
                        }
                        told.send_replace(Fitness::Fits);
                        return;
                    }
                    Definition::TooOld(_) => told.send_replace(Fitness::Unfit),
                    Definition::OtherVersions(_) | Definition::Absent => told.send_replace(Fitness::Missing),
                };
                if is_new {
                    warn!("{definition}");
                }
            }
            // Then nobody can tell, and nobody is kept from working. Credentials that are not accepted may be replaced.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 406) => {
                warn!(
                    error = status.message,
                    "The definition cannot be compared with the one of this program"
                );
                told.send_replace(Fitness::Fits);
                return;
            }
            Err(error) => debug!(%error, "the definition could not be asked for, and is asked for again"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

fn findings(definition: &Definition) -> Findings {
    let said = vec![definition.to_string()];
    match definition {
        Definition::Fits(_) => Findings {
            remarks: said.into_iter().filter(|text| !text.is_empty()).collect(),
            ..Findings::default()
        },
        Definition::TooOld(_) | Definition::OtherVersions(_) | Definition::Absent => {
            Findings { obstacles: said, ..Findings::default() }
        }
    }
}
