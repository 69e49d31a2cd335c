//! One life of the controller.

use super::blow::Fate;
use super::dial::{Dialer, Keys};
use super::event_order::HeldEvents;
use super::ledger::Ledger;
use super::line::{Life, Line};
use five_spot_apiserver::Api;
use five_spot_apiserver::faults::FaultyService;
use five_spot_cluster::{Connection, Now, Raw};
use five_spot_controller::{RunError, Settings, run};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The API servers that a controller can reach.
#[derive(Clone)]
pub(super) struct Servers {
    /// That of the management cluster.
    pub(super) management: FaultyService,
    /// That of the workload cluster.
    pub(super) workload: FaultyService,
    /// That of a cluster that has nothing to do with it.
    pub(super) other_cluster: FaultyService,
    /// The cluster of the Nodes, for malicious servers that claim to have them.
    pub(super) nodes: Api,
}

/// A controller that runs. It dies when it is dropped.
pub(super) struct Incarnation {
    life: Arc<Life>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl Incarnation {
    /// Starts one that can reach these servers.
    pub(super) fn start(
        servers: Servers,
        keys: &Arc<Keys>,
        fate: &Arc<Fate>,
        ledger: Arc<Ledger>,
        now: Now,
        settings: Settings,
    ) -> Self {
        let life = Arc::new(Life::default());
        let line_to = |api| Line {
            api,
            life: life.clone(),
            fate: fate.clone(),
            gate: keys.management(),
            events: HeldEvents::default(),
        };
        let dialer = Dialer {
            workload: line_to(servers.workload),
            other_cluster: Line { gate: Keys::open(), ..line_to(servers.other_cluster) },
            nodes: servers.nodes,
            keys: keys.clone(),
        };
        let connection = Connection::embedded(
            Raw::new(line_to(servers.management)),
            Arc::new(dialer),
            now,
            "5spot-controller",
        )
        .with_witness(ledger);
        let stop = CancellationToken::new();
        // One cluster is looked after as a whole, and has its Nodes in itself.
        let management_nodes =
            if settings.namespaces.is_empty() { vec![super::NAMESPACE.to_owned()] } else { Vec::new() };
        let settings = Settings { management_nodes, ..settings };
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
