//! One life of the controller.

use super::dial::{Dialer, ServerAccess};
use super::event_order::HeldEvents;
use super::transport::{RunState, Transport};
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
    /// That of a cluster that has nothing to do with it.
    pub(super) other_cluster: FaultyService,
    /// The cluster of the Nodes, for malicious servers that claim to have them.
    pub(super) nodes: ApiServer,
}

/// A controller that runs. It dies when it is dropped.
pub(super) struct ControllerRun {
    run_state: Arc<RunState>,
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), RunError>>>,
}

impl ControllerRun {
    /// Starts one that can reach these servers.
    pub(super) fn start(
        servers: Servers,
        access: &Arc<ServerAccess>,
        injector: &Arc<FaultInjector>,
        write_log: Arc<WriteLog>,
        now: Now,
        settings: Settings,
    ) -> Self {
        let run_state = Arc::new(RunState::default());
        let transport_to = |api| Transport {
            api,
            run_state: run_state.clone(),
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
        // One cluster is looked after as a whole, and has its Nodes in itself.
        let management_nodes =
            if settings.namespaces.is_empty() { vec![super::NAMESPACE.to_owned()] } else { Vec::new() };
        let settings = Settings { management_nodes, ..settings };
        let task = tokio::spawn(run(connection, settings, stop.clone()));
        Self { run_state, stop, task: Some(task) }
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

impl Drop for ControllerRun {
    fn drop(&mut self) {
        // Its line first, so that no task of its can send anything more before it is gone itself.
        self.run_state.end();
        if let Some(task) = self.task.take() {
            task.abort();
        }
        // Its watches are tasks of their own, and end with this.
        self.stop.cancel();
    }
}
