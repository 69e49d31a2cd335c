//! The driver of the protocol: watches the Leases of all instances, writes its own in time, and determines which
//! objects this instance may work on.

use super::ShardSettings;
use super::guard::{InstanceGuard, Permission};
use super::member::{Loss, Member, Step};
use super::process;
use super::view::View;
use crate::health::{Findings, Health};
use crate::leader::Role;
use five_spot_cluster::Connection;
use five_spot_cluster::transport::{Announcement, InstanceLeases, LeaseError, LeaseRecord, WatchedInstance};
use five_spot_core::shard::Shard;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// The time that the release of the Lease may take: the program is gone two seconds after the signal, and with an election
/// another Lease is released afterwards.
const RELEASE_WITHIN: Duration = Duration::from_millis(400);

/// The most writes that release the Lease. One write of this instance can be on its way when the work ends.
const RELEASE_ATTEMPTS: usize = 3;

/// The longest pause between two attempts to watch the Leases while the API server refuses it.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The event loop's side of the protocol: the current view, and the report that all work outside it has
/// stopped.
pub(crate) struct Follower {
    pub(crate) views: watch::Receiver<View>,
    pub(crate) stopped: watch::Sender<u64>,
}

/// Takes part in the protocol.
pub(crate) struct Driver {
    settings: ShardSettings,
    leases: InstanceLeases,
    watch: BoxStream<'static, WatchedInstance>,
    /// The watch is not polled before this time, after it has failed.
    watch_at: Instant,
    watch_pause: Duration,
    connection: Connection,
    member: Member,
    guard: Arc<InstanceGuard>,
    health: Arc<Health>,
    views: watch::Sender<View>,
    stopped: watch::Receiver<u64>,
    /// The role in the election of this shard; absent without one.
    role: Option<watch::Receiver<Role>>,
    /// True while a write has not been answered.
    is_writing: bool,
    /// The last problem, so that no log line is repeated.
    problem: Option<String>,
    logged_mismatches: Vec<(u32, Option<u32>)>,
    is_standby_logged: bool,
}

impl Driver {
    /// A driver that writes Leases with this connection, which must not have the guard.
    pub(crate) fn new(
        settings: ShardSettings,
        connection: Connection,
        guard: Arc<InstanceGuard>,
        health: Arc<Health>,
        role: Option<watch::Receiver<Role>>,
    ) -> Result<(Self, Follower), kube::Error> {
        let leases = InstanceLeases::new(connection.management()?, &settings.namespace, &settings.lease_name);
        let (views, followed) = watch::channel(View::initial(settings.shard));
        let (reports, stopped) = watch::channel(0);
        let member = Member::new(
            settings.shard,
            settings.identity.clone(),
            (settings.pod_uid.clone(), settings.process.clone()),
            settings.timing,
            role.is_none(),
        );
        let driver = Self {
            watch: leases.watch().boxed(),
            watch_at: Instant::now(),
            watch_pause: Duration::ZERO,
            leases,
            settings,
            connection,
            member,
            guard,
            health,
            views,
            stopped,
            role,
            is_writing: false,
            problem: None,
            logged_mismatches: Vec::new(),
            is_standby_logged: false,
        };
        Ok((driver, Follower { views: followed, stopped: reports }))
    }

    /// Takes part until it is stopped, and then releases the Lease. The caller must have stopped the workers before.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let working = stop.clone();
        if working.run_until_cancelled(self.take_part()).await.is_none() {
            self.release().await;
        }
    }

    async fn take_part(&mut self) {
        loop {
            let now = self.guard.now();
            if self.member.former_process().is_some_and(process::has_ended) {
                self.member.holder_ended();
            }
            let step = self.member.step(now, self.connection.now());
            self.publish();
            match step {
                Step::Wait(until) => self.wait(until.saturating_sub(now)).await,
                Step::Write(record, announcement, version) => {
                    self.write(&record, &announcement, version.as_deref(), now).await;
                }
                Step::List => self.list().await,
                Step::Resign(loss) => self.log_loss(&loss),
            }
        }
    }

    /// Publishes the objects that this instance may work on, if they have changed.
    fn publish(&mut self) {
        self.guard.set(match self.member.valid_until() {
            _ if self.member.is_unprotected() => Permission::Unprotected,
            Some(until) => Permission::Until(until),
            None => Permission::None,
        });
        let view = self.member.view(&self.views.borrow());
        let before = self.views.borrow().clone();
        if view.works() && !before.works() {
            self.is_standby_logged = false;
            info!(
                lease = self.name(),
                instance_id = view.shard().id(),
                instance_count = view.shard().count(),
                "Holds the Lease of this instance"
            );
        }
        if !view.works() {
            self.log_standby();
        }
        self.log_mismatches();
        self.views.send_if_modified(|current| {
            let is_new = *current != view;
            *current = view;
            is_new
        });
        self.report_health();
    }

    fn log_standby(&mut self) {
        let holder = self.member.holder();
        if !self.is_standby_logged && !holder.is_empty() && holder != self.settings.identity {
            info!(
                lease = self.name(),
                holder,
                "Standing by: another process holds the Lease of this instance. To run both, give each its \
                 own --instance-id"
            );
            self.is_standby_logged = true;
        }
    }

    fn log_mismatches(&mut self) {
        let mismatches = self.member.mismatches();
        if mismatches == self.logged_mismatches {
            return;
        }
        for (id, count) in mismatches.iter().filter(|mismatch| !self.logged_mismatches.contains(mismatch)) {
            warn!(
                instance_count = self.settings.shard.count(),
                other_instance_id = id,
                other_instance_count = count,
                lease = self.leases.name(*id),
                "Another instance was started with a different --instance-count. This is expected during a \
                 rollout; otherwise set the same count on all instances"
            );
        }
        self.logged_mismatches = mismatches;
    }

    /// Waits for a Lease or the role to change, or for work to stop, but not longer than the retry period: timers stand
    /// still while the machine is suspended, the clock of the Lease does not.
    async fn wait(&mut self, longest: Duration) {
        let longest = longest.min(self.settings.timing.retry_period);
        tokio::select! {
            biased;
            role = role_changed(&mut self.role) => self.member.set_taking_part(role == Role::Leader),
            Ok(()) = self.stopped.changed() => {
                let number = *self.stopped.borrow_and_update();
                self.member.stopped(number);
            }
            Some(seen) = next_after(self.watch_at, &mut self.watch) => self.seen(seen),
            () = sleep(longest) => {}
        }
    }

    fn seen(&mut self, seen: WatchedInstance) {
        let now = self.guard.now();
        let last_pause = std::mem::take(&mut self.watch_pause);
        match seen {
            WatchedInstance::Listed(leases) => self.member.relisted(leases, now),
            WatchedInstance::Present(lease) => self.member.observe(lease, now),
            WatchedInstance::Absent(id) => {
                if id == self.settings.shard.id() {
                    warn!(lease = self.name(), "Another client has deleted the Lease of this instance");
                }
                self.member.absent(id, now);
            }
            WatchedInstance::Failed { error, is_refused } => {
                debug!(error, "the watch of the Leases of all instances failed");
                let shortest = self.settings.timing.retry_period;
                let longest = if is_refused { LONGEST_PAUSE.max(shortest) } else { shortest };
                self.watch_pause = (last_pause * 2).clamp(shortest, longest);
                self.watch_at = Instant::now() + self.watch_pause;
            }
        }
    }

    /// The time limit of one request: two of them fit into the time that is left.
    fn attempt(&self) -> Duration {
        let half = self.settings.timing.renew_deadline / 2;
        let left = self.member.valid_until().map(|until| until.saturating_sub(self.guard.now()));
        half.min(left.unwrap_or(half)).max(Duration::from_millis(1))
    }

    async fn list(&mut self) {
        match timeout(self.attempt(), self.leases.list()).await {
            Ok(Ok(leases)) => {
                self.recovered();
                self.member.listed(leases, self.guard.now());
            }
            Ok(Err(error)) => self.failed("read", &error),
            Err(_) => self.failed("read", &LeaseError::Failed("no answer in time".to_owned())),
        }
    }

    async fn write(
        &mut self,
        record: &LeaseRecord,
        announcement: &Announcement,
        version: Option<&str>,
        sent: Duration,
    ) {
        let id = self.settings.shard.id();
        self.is_writing = true;
        let answer = timeout(self.attempt(), self.leases.write(id, record, announcement, version)).await;
        self.is_writing = false;
        match answer {
            Ok(Ok(lease)) => {
                self.recovered();
                self.member.written(lease, sent);
            }
            Ok(Err(LeaseError::Conflict)) => {
                self.find().await;
                self.member.conflicted(self.guard.now());
            }
            Ok(Err(error)) => self.failed("written", &error),
            Err(_) => self.failed("written", &LeaseError::Failed("no answer in time".to_owned())),
        }
    }

    /// Reads the own Lease by name, so that missing labels do not matter.
    async fn find(&mut self) {
        match timeout(self.attempt(), self.leases.find(self.settings.shard.id())).await {
            Ok(Ok(Some(lease))) => self.member.observe(lease, self.guard.now()),
            Ok(Ok(None)) => self.member.absent(self.settings.shard.id(), self.guard.now()),
            Ok(Err(error)) => self.failed("read", &error),
            Err(_) => self.failed("read", &LeaseError::Failed("no answer in time".to_owned())),
        }
    }

    fn failed(&mut self, tried: &str, error: &LeaseError) {
        let now = self.guard.now();
        match error {
            LeaseError::Refused(_) => self.member.refused(now),
            LeaseError::Conflict | LeaseError::Guarded(_) | LeaseError::Failed(_) => self.member.failed(now),
        }
        let problem = format!("the Lease {} could not be {tried}: {error}", self.name());
        if self.problem.as_ref() == Some(&problem) {
            return;
        }
        let consequence = match error {
            LeaseError::Refused(_) if self.settings.shard == Shard::ONLY => {
                "This instance works without it, but nothing prevents a second process from doing the same"
            }
            LeaseError::Refused(_) => "One of several instances does not work without its Lease",
            LeaseError::Conflict | LeaseError::Guarded(_) | LeaseError::Failed(_) => "Retrying",
        };
        warn!(lease = self.name(), %error, "The Lease of this instance could not be {tried}. {consequence}");
        self.problem = Some(problem);
        self.report_health();
    }

    fn recovered(&mut self) {
        if self.problem.take().is_some() {
            info!(lease = self.name(), "The Lease of this instance can be read and written again");
            self.report_health();
        }
    }

    /// Without access to Leases one of several instances is not ready. Everything else is a remark: readiness must not
    /// depend on a role.
    fn report_health(&self) {
        let mut findings = Findings::default();
        if let Some(problem) = &self.problem {
            let is_alone = self.settings.shard == Shard::ONLY;
            let list = if is_alone || self.member.valid_until().is_some() {
                &mut findings.remarks
            } else {
                &mut findings.obstacles
            };
            list.push(problem.clone());
        }
        let holder = self.member.holder();
        if !self.views.borrow().works() && !holder.is_empty() && holder != self.settings.identity {
            findings.remarks.push(format!("standing by: {holder} holds the Lease {}", self.name()));
        }
        self.health.examined("instance lease", &findings);
    }

    fn log_loss(&self, loss: &Loss) {
        match loss {
            Loss::Expired => warn!(
                lease = self.name(),
                renew_deadline_secs = self.settings.timing.renew_deadline.as_secs(),
                "Lost the Lease of this instance: it could not be renewed in time. Standing by"
            ),
            Loss::Replaced(holder) => warn!(
                lease = self.name(),
                holder, "Lost the Lease of this instance: it names another holder. Standing by"
            ),
            Loss::NotLeader => debug!(lease = self.name(), "another replica leads this shard"),
        }
    }

    async fn release(&mut self) {
        self.guard.set(Permission::None);
        match timeout(RELEASE_WITHIN, self.write_release()).await {
            Ok(Ok(true)) => info!(lease = self.name(), "Released the Lease of this instance"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                warn!(
                    lease = self.name(),
                    %error,
                    "The Lease of this instance was not released; it will expire"
                );
            }
            Err(_) => {
                warn!(
                    lease = self.name(),
                    "The Lease of this instance was not released in time; it will expire"
                );
            }
        }
    }

    /// Writes the release. Returns false if this instance does not hold its Lease. A write that was cut off by the end of the
    /// work may have been carried out, or may be at this moment.
    async fn write_release(&mut self) -> Result<bool, LeaseError> {
        if self.is_writing {
            self.reread().await?;
        }
        let id = self.settings.shard.id();
        for _ in 0..RELEASE_ATTEMPTS {
            let Some((record, announcement, version)) = self.member.release(self.connection.now()) else {
                return Ok(false);
            };
            match self.leases.write(id, &record, &announcement, Some(&version)).await {
                Ok(_) => return Ok(true),
                Err(LeaseError::Conflict) => self.reread().await?,
                Err(error) => return Err(error),
            }
        }
        Err(LeaseError::Conflict)
    }

    async fn reread(&mut self) -> Result<(), LeaseError> {
        if let Some(lease) = self.leases.find(self.settings.shard.id()).await? {
            self.member.observe(lease, self.guard.now());
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.leases.name(self.settings.shard.id()))
    }
}

/// The next event of a watch, which is not polled before this time.
async fn next_after(at: Instant, watch: &mut BoxStream<'static, WatchedInstance>) -> Option<WatchedInstance> {
    sleep_until(at).await;
    watch.next().await
}

/// Waits until the role changes; forever without an election.
async fn role_changed(role: &mut Option<watch::Receiver<Role>>) -> Role {
    if let Some(role) = role
        && role.changed().await.is_ok()
    {
        return *role.borrow_and_update();
    }
    std::future::pending().await
}
