//! One life of the controller.

use super::blow::Fate;
use super::dial::{Dialer, Keys};
use super::ledger::Ledger;
use super::line::{Life, Line};
use five_spot_cluster::{Connection, Now, Raw};
use five_spot_controller::{RunError, Settings, run};
use five_spot_sandbox::faults::FaultyService;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A controller that runs. It dies when it is dropped.
pub(super) struct Incarnation {
    life: Arc<Life>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Incarnation {
    /// Starts one on the services of the management and the workload cluster.
    pub(super) fn start(
        (management, workload): (FaultyService, FaultyService),
        keys: &Arc<Keys>,
        fate: &Arc<Fate>,
        ledger: Arc<Ledger>,
        now: Now,
        namespaces: Vec<String>,
    ) -> Self {
        let life = Arc::new(Life::default());
        let line_to = |api| Line { api, life: life.clone(), fate: fate.clone(), gate: keys.management() };
        let dialer = Dialer { workload: line_to(workload), keys: keys.clone() };
        let connection =
            Connection::embedded(Raw::new(line_to(management)), Arc::new(dialer), now, "5spot-controller")
                .with_witness(ledger);
        let stop = CancellationToken::new();
        let settings = Settings { namespaces, ..Settings::default() };
        let task = tokio::spawn(run(connection, settings, stop.clone()));
        Self { life, stop, task: Some(task) }
    }

    /// Tells it to stop, and waits until it has.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await??;
        }
        Ok(())
    }
}

impl Drop for Incarnation {
    fn drop(&mut self) {
        // Its line first, so that no task of its can send anything more before it is gone itself.
        self.life.end();
        if let Some(task) = self.task.take() {
            task.abort();
        }
        // Its watches are tasks of their own, and end with this.
        self.stop.cancel();
    }
}
