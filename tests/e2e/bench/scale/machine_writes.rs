//! The creations and deletions of Machines that the API server has answered, from its audit log.

use std::collections::BTreeMap;

use anyhow::ensure;
use five_spot_api::names;
use five_spot_testenv::audit::{AuditLog, AuditQuery, AuditRecord};
use five_spot_testenv::cluster::CONTROLLER_AGENT;

use super::objects;
use super::openings::CONCURRENCY;

/// The number of accepted creations and deletions by the name of the Machine.
#[derive(Default)]
pub(super) struct MachineWrites {
    created: BTreeMap<String, usize>,
    deleted: BTreeMap<String, usize>,
}

impl MachineWrites {
    /// Reads the writes after a place in the log.
    pub(super) fn read(log: &AuditLog, place: u64) -> anyhow::Result<Self> {
        let query = AuditQuery::all()
            .user_agent(CONTROLLER_AGENT)
            .resource("machines")
            .verbs(&["create", "patch", "delete"]);
        let mut writes = Self::default();
        for record in log.read_from(place, &query)?.0 {
            writes.add(record);
        }
        Ok(writes)
    }

    fn add(&mut self, record: AuditRecord) {
        match (record.verb.as_str(), record.code) {
            ("create" | "patch", Some(201)) => *self.created.entry(record.object.name).or_default() += 1,
            ("delete", Some(200)) => *self.deleted.entry(record.object.name).or_default() += 1,
            (_, _) => {}
        }
    }

    pub(super) fn created(&self) -> usize {
        self.created.values().sum()
    }

    pub(super) fn deleted(&self) -> usize {
        self.deleted.values().sum()
    }

    /// Checks that the Machine of each object was created once and none was deleted. Returns the number of creations whose
    /// answer is not in the log.
    pub(super) fn check_opening(&self, objects: usize, interruptions: usize) -> anyhow::Result<usize> {
        let deleted = self.deleted.keys().next();
        ensure!(
            deleted.is_none(),
            "{} was deleted before its window closed",
            deleted.map_or("", String::as_str)
        );
        once_each(&self.created, "created", objects, interruptions)
    }

    /// Checks that the Machine of each object was deleted once and none was created. Returns the number of deletions whose
    /// answer is not in the log.
    pub(super) fn check_closing(&self, objects: usize, interruptions: usize) -> anyhow::Result<usize> {
        let created = self.created.keys().next();
        ensure!(
            created.is_none(),
            "{} was created after its window had closed",
            created.map_or("", String::as_str)
        );
        once_each(&self.deleted, "deleted", objects, interruptions)
    }
}

/// Checks that each Machine has one answer. A client or a server that is killed can leave requests that took place without
/// an answer in the log: no more than are under way at a time.
fn once_each(
    answers: &BTreeMap<String, usize>,
    what: &str,
    objects: usize,
    interruptions: usize,
) -> anyhow::Result<usize> {
    let mut without = Vec::new();
    for machine in (0..objects).map(|number| names::machine(&objects::name(number))) {
        match answers.get(&machine) {
            Some(1) => {}
            None => without.push(machine),
            Some(count) => anyhow::bail!("{machine} was {what} {count} times"),
        }
    }
    ensure!(
        without.len() <= interruptions * CONCURRENCY,
        "{} Machines were not {what}, {} among them",
        without.len(),
        without[0]
    );
    if !without.is_empty() {
        eprintln!("interrupted before the answer was logged: {}", without.join(", "));
    }
    Ok(without.len())
}
