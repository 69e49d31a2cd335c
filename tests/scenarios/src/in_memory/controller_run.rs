//! One run of the controller.

use super::dial::{Dialer, ServerAccess};
use super::election::Election;
use super::event_order::HeldEvents;
use super::link::RunState;
use super::transport::Transport;
use super::write_fault::FaultInjector;
use super::write_log::WriteLog;
use five_spot_apiserver::ApiServer;
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
    /// That of an unrelated cluster.
    pub(super) other_cluster: FaultyService,
    /// The cluster of the Nodes, for malicious servers that claim to have them.
    pub(super) nodes: ApiServer,
}

/// A running controller. Dropping it kills it.
pub(super) struct ControllerRun {
    process: Arc<RunState>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl ControllerRun {
    /// Starts one in a process that can reach these servers.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn start(
        process: Arc<RunState>,
        election: Option<&Arc<Election>>,
        servers: Servers,
        access: &Arc<ServerAccess>,
        injector: &Arc<FaultInjector>,
        write_log: Arc<WriteLog>,
        now: Now,
        settings: Settings,
    ) -> Self {
        let transport_to = |api| Transport {
            api,
            process: process.clone(),
            election: election.cloned(),
            injector: injector.clone(),
            filter: access.management(),
            events: HeldEvents::default(),
        };
        let dialer = Dialer {
            workload: transport_to(servers.workload),
            other_cluster: Transport { filter: ServerAccess::open(), ..transport_to(servers.other_cluster) },
            nodes: servers.nodes,
            access: access.clone(),
        };
        let connection = Connection::embedded(
            Raw::new(transport_to(servers.management)),
            Arc::new(dialer),
            now,
            "5spot-controller",
        )
        .with_observer(write_log);
        let stop = CancellationToken::new();
        // A single cluster is watched as a whole, and contains its Nodes.
        let management_nodes =
            if settings.namespaces.is_empty() { vec![super::NAMESPACE.to_owned()] } else { Vec::new() };
        let settings = Settings { management_nodes, ..settings };
        let task = tokio::spawn(run(connection, settings, stop.clone()));
        Self { process, stop, task: Some(task) }
    }

    /// Its process.
    pub(super) fn process(&self) -> Arc<RunState> {
        self.process.clone()
    }

    /// Tells it to stop.
    pub(super) fn cancel(&self) {
        self.stop.cancel();
    }

    /// Tells it to stop, and waits until it has.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.cancel();
        if let Some(task) = self.task.take() {
            task.await??;
        }
        Ok(())
    }
}

impl Drop for ControllerRun {
    fn drop(&mut self) {
        // Its connection first, so that none of its tasks can send anything before it has ended.
        self.process.end();
        if let Some(task) = self.task.take() {
            task.abort();
        }
        // Its watches are tasks of their own, and end with this.
        self.stop.cancel();
    }
}
