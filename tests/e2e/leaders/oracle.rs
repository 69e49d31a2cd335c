//! The audit log, by pod.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use five_spot_testenv::audit::{AuditQuery, AuditRecord};
use five_spot_testenv::cluster::CONTROLLER_AGENT;
use five_spot_testenv::test_clusters::TestContext;
use jiff::Timestamp;

use super::LEASE;

/// The writes of the replicas since the start of the context, oldest first.
pub(super) struct Writes {
    renewals: Vec<AuditRecord>,
    others: Vec<AuditRecord>,
    /// Writes that were refused or failed, without those of the Lease.
    refused: Vec<AuditRecord>,
}

impl Writes {
    pub(super) fn read(context: &TestContext) -> anyhow::Result<Self> {
        let query = AuditQuery::all().user_agent(CONTROLLER_AGENT).writes().since(context.begun());
        let mut records = context.management().audit_log().read(&query)?;
        records.retain(|record| record.stage == "ResponseComplete" && !record.pod.is_empty());
        records.sort_by_key(|record| record.answered);
        let is_accepted = |record: &AuditRecord| record.code.is_some_and(|code| code < 300);
        let (records, refused): (Vec<_>, Vec<_>) = records.into_iter().partition(is_accepted);
        let is_renewal =
            |record: &AuditRecord| record.object.resource == "leases" && record.object.name == LEASE;
        let (renewals, others): (Vec<_>, Vec<_>) = records.into_iter().partition(is_renewal);
        // Access reviews are POST requests that write nothing, and events report earlier writes.
        let is_change = |record: &AuditRecord| {
            !matches!(record.object.resource.as_str(), "selfsubjectaccessreviews" | "events")
        };
        let others = others.into_iter().filter(is_change).collect();
        let refused = refused.into_iter().filter(|record| is_change(record) && !is_renewal(record)).collect();
        Ok(Self { renewals, others, refused })
    }

    /// Checks that a pod that went on at `since` sent nothing that the fence is about, accepted or refused, until it held
    /// the Lease again.
    pub(super) fn sent_nothing_before_its_next_term(
        &self,
        pod: &str,
        since: Timestamp,
    ) -> anyhow::Result<()> {
        let mut terms =
            self.renewals.iter().filter(|renewal| renewal.pod == pod && renewal.received >= since);
        let until = terms.next().map(|renewal| renewal.received);
        let is_late = |write: &&AuditRecord| {
            write.pod == pod
                && write.received >= since
                && until.is_none_or(|until| write.received < until)
                && is_fenced(write)
        };
        if let Some(write) = self.others.iter().chain(&self.refused).find(is_late) {
            bail!(
                "{write} at {} with code {:?} by {pod}, which went on at {since} and led again at {until:?}\n{self}",
                write.received,
                write.code
            );
        }
        Ok(())
    }

    /// Checks that every write was made by the pod that had last written the Lease.
    pub(super) fn never_overlap(&self) -> anyhow::Result<()> {
        for write in &self.others {
            let holder = self.renewals.iter().rev().find(|renewal| renewal.answered <= write.received);
            let holder = holder.map_or("no pod", |renewal| renewal.pod.as_str());
            ensure!(
                holder == write.pod,
                "{write} at {} by {}, while {holder} held the Lease\n{self}",
                write.received,
                write.pod
            );
        }
        Ok(())
    }

    /// Checks that every Machine was created once, and that there is one for each object.
    pub(super) fn made_one_machine_each(&self, objects: &[String]) -> anyhow::Result<()> {
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        for write in &self.others {
            if write.object.resource == "machines" && write.code == Some(201) {
                *made.entry(&write.object.name).or_default() += 1;
            }
        }
        let expected: Vec<String> = objects.iter().map(|object| format!("{object}-machine")).collect();
        for machine in &expected {
            ensure!(made.get(machine.as_str()) == Some(&1), "{machine}: {made:?}");
        }
        ensure!(made.len() == expected.len(), "{made:?}");
        Ok(())
    }
}

/// True for writes that the policy of `deploy/ha` is about.
fn is_fenced(write: &AuditRecord) -> bool {
    match write.object.resource.as_str() {
        "leases" => write.object.name.starts_with("5spot-machine-"),
        resource => {
            matches!(resource, "machines" | "scheduledmachines" | "remotemachines")
                || resource.ends_with("configs")
        }
    }
}

impl std::fmt::Display for Writes {
    /// The terms of the leaders, with the writes of each.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all: Vec<&AuditRecord> = self.renewals.iter().chain(&self.others).collect();
        all.sort_by_key(|record| record.answered);
        for term in all.chunk_by(|one, other| one.pod == other.pod) {
            let (first, last) = (&term[0], &term[term.len() - 1]);
            let renewals = term.iter().filter(|record| record.object.name == LEASE).count();
            let writes = term.len() - renewals;
            writeln!(
                f,
                "{} from {} to {}: {renewals} writes of the Lease, {writes} others",
                first.pod, first.received, last.answered
            )?;
        }
        Ok(())
    }
}
