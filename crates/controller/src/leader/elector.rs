//! The driver of the election: watches the Lease, writes it in time, and determines the role of this
//! instance.

use super::guard::LeaseGuard;
use super::state::{Candidate, Loss, MAX_DURATION, Step};
use super::{ElectionSettings, Role};
use crate::health::{Findings, Health};
use five_spot_cluster::Connection;
use five_spot_cluster::transport::{LeaseApi, LeaseError, LeaseRecord, StoredLease, WatchedLease};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

/// The time that the release of the Lease may take: the program is gone two seconds after the signal.
const RELEASE_WITHIN: Duration = Duration::from_millis(800);

/// The most writes that release the Lease. One write of this instance can be on its way when the election ends.
const RELEASE_ATTEMPTS: usize = 3;

/// Takes part in the election.
pub(crate) struct Elector {
    settings: ElectionSettings,
    lease: LeaseApi,
    watch: BoxStream<'static, WatchedLease>,
    connection: Connection,
    candidate: Candidate,
    guard: Arc<LeaseGuard>,
    health: Arc<Health>,
    role: watch::Sender<Role>,
    /// True while a write has not been answered.
    is_writing: bool,
    /// The last log line, so that none is repeated.
    logged_holder: Option<String>,
    problems: BTreeMap<Access, String>,
}

/// An attempt at the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Read,
    Write,
}

impl Access {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "written",
        }
    }
}

impl Elector {
    /// An elector that writes the Lease with this connection, which must not have the guard.
    pub(crate) fn new(
        settings: ElectionSettings,
        connection: Connection,
        guard: Arc<LeaseGuard>,
        health: Arc<Health>,
    ) -> Result<(Self, watch::Receiver<Role>), kube::Error> {
        let lease = LeaseApi::new(connection.management()?, &settings.namespace, &settings.name);
        let (role, roles) = watch::channel(Role::Standby);
        let elector = Self {
            candidate: Candidate::new(settings.identity.clone(), settings.timing),
            watch: lease.watch().boxed(),
            lease,
            settings,
            connection,
            guard,
            health,
            role,
            is_writing: false,
            logged_holder: None,
            problems: BTreeMap::new(),
        };
        Ok((elector, roles))
    }

    /// Takes part until it is stopped, and then releases the Lease. The caller must have stopped the workers
    /// before.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let electing = stop.clone();
        if electing.run_until_cancelled(self.elect()).await.is_none() {
            self.release().await;
        }
    }

    async fn elect(&mut self) {
        loop {
            let now = self.guard.now();
            match self.candidate.step(now, self.connection.now()) {
                Step::Wait(until) => self.wait(until.saturating_sub(now)).await,
                Step::Write(record, version) => self.write(&record, version.as_deref(), now).await,
                Step::Resign(loss) => self.step_down(&loss),
            }
        }
    }

    /// Waits for the Lease to change, but not longer than the retry period: timers stand still while the machine is
    /// suspended, the clock of the Lease does not.
    async fn wait(&mut self, longest: Duration) {
        let longest = longest.min(self.settings.timing.retry_period);
        tokio::select! {
            biased;
            Some(seen) = self.watch.next() => match seen {
                WatchedLease::Present(lease) => {
                    if !self.is_outdated(&lease) {
                        self.observe(Some(lease));
                    }
                }
                WatchedLease::Absent => self.observe(None),
                WatchedLease::Failed(error) => {
                    debug!(error, "the watch of the Lease failed, reading it instead");
                    self.read().await;
                    sleep(self.pause()).await;
                }
            },
            () = sleep(longest) => {}
        }
    }

    /// The wait after a failed watch: no longer than the Lease is held.
    fn pause(&self) -> Duration {
        let left = self.candidate.valid_until().map(|until| until.saturating_sub(self.guard.now()));
        self.settings.timing.retry_period.min(left.unwrap_or(Duration::MAX))
    }

    /// True if a watch reports a state from before the last write of this instance.
    fn is_outdated(&self, lease: &StoredLease) -> bool {
        let number = |version: &str| version.parse::<u64>().ok();
        let known = self.candidate.version().and_then(number);
        known.zip(number(&lease.version)).is_some_and(|(known, seen)| seen <= known)
    }

    fn observe(&mut self, lease: Option<StoredLease>) {
        if lease.is_none() && self.candidate.holder().is_some_and(|holder| !holder.is_empty()) {
            warn!(lease = self.name(), "Another client has deleted the Lease");
        }
        if let Some(lease) = &lease {
            self.examine(lease);
        }
        self.candidate.observe(lease, self.guard.now());
        self.log_holder();
        // Nothing is written while another instance holds the Lease, so that nothing would show when a problem is over.
        let is_other =
            self.candidate.holder().is_some_and(|holder| !["", &*self.settings.identity].contains(&holder));
        if is_other && self.problems.remove(&Access::Write).is_some() {
            self.remark();
        }
    }

    /// Reports a record that no replica of this program would write.
    fn examine(&mut self, lease: &StoredLease) {
        let record = &lease.record;
        let known = self.candidate.record();
        let is_new = known.is_none_or(|known| known.holder != record.holder);
        let is_edited = known.is_none_or(|known| known.duration_seconds != record.duration_seconds);
        let held_for = Duration::from_secs(record.duration_seconds.into());
        let is_unusable = held_for.is_zero() || held_for > MAX_DURATION;
        if is_new && !record.holder.is_empty() && !record.holder.contains('_') {
            warn!(
                lease = self.name(),
                holder = record.holder,
                "The holder of the Lease has no random part: another program may be using this Lease. Give each \
                 deployment a Lease of its own with --lease-name"
            );
        }
        if (is_new || is_edited) && is_unusable && !record.holder.is_empty() {
            warn!(
                lease = self.name(),
                holder = record.holder,
                lease_duration_secs = record.duration_seconds,
                "The Lease has no usable duration: another client has edited it"
            );
        }
    }

    fn log_holder(&mut self) {
        let holder = self.candidate.holder().unwrap_or_default().to_owned();
        let is_other = holder != self.settings.identity;
        if is_other && self.logged_holder.as_ref() != Some(&holder) && self.candidate.valid_until().is_none()
        {
            info!(lease = self.name(), holder, "Standing by");
        }
        self.logged_holder = Some(holder);
    }

    /// Reads the Lease. Returns false if that failed.
    async fn read(&mut self) -> bool {
        let error = match timeout(self.attempt(), self.lease.read()).await {
            Ok(Ok(lease)) => {
                self.recovered(Access::Read);
                self.observe(lease);
                return true;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        self.report(Access::Read, &error);
        false
    }

    /// The time limit of one request: two of them fit into the time that is left.
    fn attempt(&self) -> Duration {
        let half = self.settings.timing.renew_deadline / 2;
        let left = self.candidate.valid_until().map(|until| until.saturating_sub(self.guard.now()));
        half.min(left.unwrap_or(half)).max(Duration::from_millis(1))
    }

    async fn write(&mut self, record: &LeaseRecord, version: Option<&str>, sent: Duration) {
        self.is_writing = true;
        let answer = timeout(self.attempt(), self.lease.write(record, version)).await;
        self.is_writing = false;
        match answer {
            Ok(Ok(lease)) => {
                self.candidate.written(lease, sent);
                self.recovered(Access::Write);
                self.lead();
            }
            Ok(Err(LeaseError::Conflict)) => {
                self.candidate.failed(self.guard.now());
                let is_read = self.read().await;
                // A label was changed by someone else: this instance still holds the Lease, and renews it at
                // once.
                if is_read && self.candidate.holder() == Some(&self.settings.identity) {
                    self.candidate.retry_now(self.guard.now());
                }
            }
            Ok(Err(error)) => {
                self.candidate.failed(self.guard.now());
                self.report(Access::Write, &error.to_string());
            }
            Err(_) => {
                self.candidate.failed(self.guard.now());
                self.report(Access::Write, "no answer in time");
                self.read().await;
            }
        }
    }

    fn lead(&mut self) {
        self.guard.set(self.candidate.valid_until());
        if *self.role.borrow() == Role::Leader {
            return;
        }
        info!(lease = self.name(), identity = self.settings.identity, "Became the leader");
        self.logged_holder = Some(self.settings.identity.clone());
        self.role.send_replace(Role::Leader);
    }

    fn step_down(&mut self, loss: &Loss) {
        self.guard.set(None);
        self.role.send_replace(Role::Standby);
        match loss {
            Loss::Expired => warn!(
                lease = self.name(),
                renew_deadline_secs = self.settings.timing.renew_deadline.as_secs(),
                "Lost the Lease: it could not be renewed in time. Standing by"
            ),
            Loss::Replaced(holder) => {
                warn!(lease = self.name(), holder, "Lost the Lease: it names another holder. Standing by");
                self.logged_holder = Some(holder.clone());
            }
        }
    }

    async fn release(&mut self) {
        self.guard.set(None);
        self.role.send_replace(Role::Standby);
        match timeout(RELEASE_WITHIN, self.write_release()).await {
            Ok(Ok(true)) => info!(lease = self.name(), "Released the Lease"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                warn!(lease = self.name(), %error, "The Lease was not released; it will expire");
            }
            Err(_) => warn!(lease = self.name(), "The Lease was not released in time; it will expire"),
        }
    }

    /// Writes the release. Returns false if this instance does not hold the Lease. A write that was cut off by the end of
    /// the election may have been carried out, or may be at this moment.
    async fn write_release(&mut self) -> Result<bool, LeaseError> {
        if self.is_writing {
            self.reread().await?;
        }
        for _ in 0..RELEASE_ATTEMPTS {
            let Some((record, version)) = self.candidate.release(self.connection.now()) else {
                return Ok(false);
            };
            match self.lease.write(&record, Some(&version)).await {
                Ok(_) => return Ok(true),
                Err(LeaseError::Conflict) => self.reread().await?,
                Err(error) => return Err(error),
            }
        }
        Err(LeaseError::Conflict)
    }

    async fn reread(&mut self) -> Result<(), LeaseError> {
        let lease = self.lease.read().await?;
        self.candidate.observe(lease, self.guard.now());
        Ok(())
    }

    /// Logs a problem with the Lease once, and shows it as a remark in `/ready`: readiness needs no leadership.
    fn report(&mut self, access: Access, error: &str) {
        if self.problems.insert(access, error.to_owned()).as_deref() == Some(error) {
            return;
        }
        let (lease, tried) = (self.name(), access.as_str());
        warn!(lease, error, "The Lease could not be {tried}; retrying");
        self.remark();
    }

    fn recovered(&mut self, access: Access) {
        // A program that can write the Lease can also read it.
        let is_other = |other: &Access| access == Access::Read && *other == Access::Write;
        let before = self.problems.len();
        self.problems.retain(|other, _| is_other(other));
        if self.problems.len() < before {
            info!(lease = self.name(), "The Lease can be {} again", access.as_str());
            self.remark();
        }
    }

    fn remark(&self) {
        let lease = self.name();
        let remark = |(access, error): (&Access, &String)| {
            format!("the Lease {lease} could not be {}: {error}", access.as_str())
        };
        let remarks = self.problems.iter().map(remark).collect();
        self.health.examined("lease", &Findings { remarks, ..Findings::default() });
    }

    fn name(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.name)
    }
}
