//! The controllers of an environment: one, replicas of which one leads, or instances that share the objects.

use super::controller_run::ControllerRun;
use super::election::{Election, TIMING, pod};
use super::leader_fault::away_for;
use super::link::{LEASE_NAME, RunState};
use crate::environment::LeaderFault;
use crate::scenario::Controllers;
use anyhow::{Context as _, ensure};
use five_spot_api::names::SYSTEM_NAMESPACE;
use five_spot_apiserver::ApiServer;
use five_spot_controller::Settings;
use five_spot_controller::leader::ElectionSettings;
use five_spot_controller::shards::{InstanceTiming, ShardSettings};
use five_spot_core::shard::Shard;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time within which a controller that has ended is replaced, and the next one leads.
const SUCCEEDED_WITHIN: Duration = Duration::from_mins(2);

/// The time between two checks of the controllers.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The controllers.
pub(super) struct Fleet {
    controllers: Controllers,
    election: Option<Arc<Election>>,
    runs: Mutex<Vec<Option<ControllerRun>>>,
    processes: AtomicU32,
}

impl Fleet {
    /// No controller runs yet.
    pub(super) fn new(controllers: Controllers, management: &ApiServer) -> Self {
        let election = match controllers {
            Controllers::One => None,
            Controllers::Replicas(_) => Some(Arc::new(Election::new(management.clone(), true))),
            Controllers::Shards(_) => Some(Arc::new(Election::new(management.clone(), false))),
        };
        Self { controllers, election, runs: Mutex::default(), processes: AtomicU32::new(0) }
    }

    /// The election, if there are several controllers.
    pub(super) fn election(&self) -> Option<&Arc<Election>> {
        self.election.as_ref()
    }

    /// The numbers of the controllers.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        match self.controllers {
            Controllers::One => 0..1,
            Controllers::Replicas(count) | Controllers::Shards(count) => 0..count,
        }
    }

    /// A new process for the controller of a number.
    pub(super) fn process(&self, number: u32) -> Arc<RunState> {
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        Arc::new(RunState::new(format!("{}_{process}", pod_name(number))))
    }

    /// The settings of the controller of a number.
    pub(super) fn settings(&self, number: u32, process: &RunState, common: Settings) -> Settings {
        let shard = match self.controllers {
            Controllers::One => return common,
            // Replicas share the Lease of the only instance.
            Controllers::Replicas(_) => Shard::ONLY,
            Controllers::Shards(count) => Shard::new(number, count).expect("a number below the count"),
        };
        let election = matches!(self.controllers, Controllers::Replicas(_)).then(|| ElectionSettings {
            name: LEASE_NAME.to_owned(),
            namespace: SYSTEM_NAMESPACE.to_owned(),
            identity: process.identity.clone(),
            timing: TIMING,
            clock: process.clock(),
        });
        let shards = ShardSettings {
            shard,
            lease_name: LEASE_NAME.to_owned(),
            namespace: SYSTEM_NAMESPACE.to_owned(),
            identity: process.identity.clone(),
            pod_uid: None,
            process: None,
            timing: InstanceTiming::shared(TIMING),
            clock: process.clock(),
        };
        let (instance, metrics) = (pod_name(number), Arc::default());
        Settings { instance, metrics, election, shards: Some(shards), ..common }
    }

    /// Starts, replaces or removes a controller. The previous one is killed.
    pub(super) fn put(&self, number: u32, run: Option<ControllerRun>) {
        let (mut runs, number) = (self.lock(), number as usize);
        if runs.len() <= number {
            runs.resize_with(number + 1, || None);
        }
        runs[number] = run;
    }

    /// Removes all controllers, and returns them.
    pub(super) fn take(&self) -> Vec<ControllerRun> {
        std::mem::take(&mut *self.lock()).into_iter().flatten().collect()
    }

    /// The numbers of the controllers that have ended.
    pub(super) fn dead(&self) -> Vec<u32> {
        let runs = self.lock();
        let is_over = |run: &ControllerRun| run.process().is_over();
        let is_dead = |number: &u32| runs.get(*number as usize).and_then(Option::as_ref).is_some_and(is_over);
        self.numbers().filter(is_dead).collect()
    }

    /// Disturbs the leader, or the first of several instances that share the objects. If a fault has just ended it, its successor
    /// is waited for.
    pub(super) async fn disturb(&self, fault: LeaderFault) -> anyhow::Result<Arc<RunState>> {
        let process = tokio::time::timeout(SUCCEEDED_WITHIN, async {
            loop {
                if let Some(process) = self.at_work().await? {
                    return anyhow::Ok(process);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        let process = process.await.context("no controller works")??;
        away_for(&process, fault);
        Ok(process)
    }

    /// The process of the leader, or of the first of several instances that share the objects, if it runs.
    async fn at_work(&self) -> anyhow::Result<Option<Arc<RunState>>> {
        let number = match self.controllers {
            Controllers::Replicas(_) => self.leader().await?,
            Controllers::One | Controllers::Shards(_) => Some(0),
        };
        let Some(number) = number else { return Ok(None) };
        let runs = self.lock();
        let run = runs.get(number as usize).and_then(Option::as_ref);
        Ok(run.map(ControllerRun::process).filter(|process| !process.is_over()))
    }

    /// The number of the leader, if there is one.
    async fn leader(&self) -> anyhow::Result<Option<u32>> {
        let (holder, _) = self.election().context("there is an election")?.holder().await?;
        Ok(self.numbers().find(|number| pod_name(*number) == pod(&holder)))
    }

    /// Checks that no two controllers worked at the same time, that another one took over from a leader that was disturbed, and
    /// that all instances had a share.
    pub(super) async fn check(&self, is_leader_disturbed: bool) -> anyhow::Result<()> {
        let Some(election) = self.election() else { return Ok(()) };
        let violations = election.violations();
        ensure!(violations.is_empty(), "two controllers worked at the same time:\n{}", violations.join("\n"));
        if is_leader_disturbed {
            let (holder, changes) = election.holder().await?;
            ensure!(changes > 1, "nobody took over: {holder} has held the Lease from the beginning");
        }
        if let Controllers::Shards(count) = self.controllers {
            let at_work = election.instances_at_work();
            ensure!(at_work == count as usize, "{at_work} of {count} instances had something to do");
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<ControllerRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pod_name(number: u32) -> String {
    format!("5spot-controller-{number}")
}
