//! The progress of a fleet, from the audit log of the API server: the times in it are the server's own.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_testenv::audit::{AuditLog, AuditQuery, AuditRecord};
use five_spot_testenv::cluster::CONTROLLER_AGENT;
use jiff::Timestamp;

use super::objects;
use crate::bench::measure::{Memory, is_renewal};

/// The pause between two looks at the log.
const READ_EVERY: Duration = Duration::from_millis(200);

/// The time that the controller has to come to rest.
const SILENT_WITHIN: Duration = Duration::from_mins(10);

/// The times at which an object got ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// The first write of its status was answered.
    pub(super) reported: Option<Timestamp>,
    /// The object itself was written: it has our finalizer.
    pub(super) finalized: Option<Timestamp>,
    /// The request that created its bootstrap object arrived.
    pub(super) first_create: Option<Timestamp>,
    /// The Machine was created.
    machine: Option<Timestamp>,
    /// The first write of the status after that was answered: it is Active.
    pub(super) active: Option<Timestamp>,
    /// The deletion of the Machine was accepted.
    pub(super) deleted: Option<Timestamp>,
    /// The last write of its status was answered.
    pub(super) last_report: Option<Timestamp>,
}

/// The requests of the controller since a place in the log.
pub(super) struct Progress {
    log: AuditLog,
    place: u64,
    /// By object.
    pub(super) steps: BTreeMap<usize, Steps>,
    /// By verb and resource, without watches.
    pub(super) requests: BTreeMap<String, u64>,
    pub(super) writes: u64,
    /// Renewals of Leases: they are sent whatever happens.
    renewals: u64,
    pub(super) first: Option<Timestamp>,
    pub(super) last: Option<Timestamp>,
    /// The most memory that the process had while it was followed.
    pub(super) peak: Memory,
}

impl Progress {
    /// Follows the log from its end on.
    pub(super) fn follow(log: AuditLog) -> anyhow::Result<Self> {
        let place = log.end()?;
        Ok(Self {
            log,
            place,
            steps: BTreeMap::new(),
            requests: BTreeMap::new(),
            writes: 0,
            renewals: 0,
            first: None,
            last: None,
            peak: Memory::default(),
        })
    }

    /// Reads what was added to the log.
    pub(super) fn read(&mut self) -> anyhow::Result<()> {
        let query = AuditQuery::all().user_agent(CONTROLLER_AGENT);
        let (records, place) = self.log.read_from(self.place, &query)?;
        self.place = place;
        for record in &records {
            self.add(record);
        }
        Ok(())
    }

    /// Reads until so many objects have made a step, which has to be before the deadline.
    pub(super) async fn until(
        &mut self,
        pid: u32,
        count: usize,
        deadline: Timestamp,
        step: impl Fn(&Steps) -> bool,
    ) -> anyhow::Result<()> {
        loop {
            self.read()?;
            let memory = Memory::of(pid)?;
            if memory.resident > self.peak.resident {
                self.peak = memory;
            }
            let done = self.steps.values().filter(|steps| step(steps)).count();
            if done >= count {
                return Ok(());
            }
            ensure!(Timestamp::now() < deadline, "only {done} of {count} objects at {deadline}");
            tokio::time::sleep(READ_EVERY).await;
        }
    }

    /// Reads until the Machine of an object was deleted, which has to be before the deadline.
    pub(super) async fn until_deleted(&mut self, number: usize, deadline: Timestamp) -> anyhow::Result<()> {
        loop {
            self.read()?;
            if self.steps.get(&number).is_some_and(|steps| steps.deleted.is_some()) {
                return Ok(());
            }
            let name = objects::name(number);
            ensure!(Timestamp::now() < deadline, "the Machine of {name} was not deleted before {deadline}");
            tokio::time::sleep(READ_EVERY).await;
        }
    }

    /// Reads until there were no requests for this long, but renewals of Leases.
    pub(super) async fn until_silent(&mut self, silence: Duration) -> anyhow::Result<()> {
        let mut before = self.beside_leases();
        let silent = async {
            loop {
                tokio::time::sleep(silence).await;
                self.read()?;
                let now = self.beside_leases();
                if now == before {
                    return anyhow::Ok(());
                }
                before = now;
            }
        };
        tokio::time::timeout(SILENT_WITHIN, silent).await.context("the controller does not come to rest")?
    }

    /// All requests but watches.
    pub(super) fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// All requests but watches and renewals of Leases.
    pub(super) fn beside_leases(&self) -> u64 {
        self.total() - self.renewals
    }

    fn add(&mut self, record: &AuditRecord) {
        if record.verb == "watch" || record.stage != "ResponseComplete" {
            return;
        }
        let object = &record.object;
        let is_created = record.code == Some(201);
        let is_accepted = record.code.is_some_and(|code| code < 300);
        let verb = match record.verb.as_str() {
            "patch" if is_created => "apply (new)",
            verb => verb,
        };
        let slash = if object.subresource.is_empty() { "" } else { "/" };
        let kind = format!("{verb} {}{slash}{}", object.resource, object.subresource);
        *self.requests.entry(kind).or_default() += 1;
        self.first.get_or_insert(record.received);
        self.last = self.last.max(Some(record.answered));
        self.writes += u64::from(is_write(record));
        self.renewals += u64::from(is_renewal(record));
        let Some(number) = objects::number(&object.name) else { return };
        let steps = self.steps.entry(number).or_default();
        match (record.verb.as_str(), object.resource.as_str(), object.subresource.as_str()) {
            ("patch", "scheduledmachines", "status") if is_accepted => {
                steps.reported.get_or_insert(record.answered);
                steps.last_report = Some(record.answered);
                if steps.machine.is_some_and(|created| created <= record.received) {
                    steps.active.get_or_insert(record.answered);
                }
            }
            ("patch", "scheduledmachines", "") if is_accepted => {
                steps.finalized.get_or_insert(record.answered);
            }
            ("patch", "k0sworkerconfigs", _) if is_created => {
                steps.first_create.get_or_insert(record.received);
            }
            ("patch", "machines", _) if is_created => {
                steps.machine.get_or_insert(record.answered);
            }
            ("delete", "machines", "") if is_accepted => {
                steps.deleted.get_or_insert(record.answered);
            }
            (_, _, _) => {}
        }
    }
}

/// True for requests that change objects. A review of one's own permissions is created, and changes nothing; the Leases of the
/// instance and of the leader are renewed whatever happens.
pub(super) fn is_write(record: &AuditRecord) -> bool {
    let is_review = record.object.resource.starts_with("selfsubject");
    !is_review && !is_renewal(record) && !["get", "list"].contains(&record.verb.as_str())
}
