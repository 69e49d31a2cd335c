//! The writes of the controller, from the audit logs of both API servers.

use std::sync::{Mutex, PoisonError};

use five_spot_scenarios::Write;
use five_spot_testenv::audit::{AuditLog, AuditQuery, AuditRecord};
use five_spot_testenv::cluster::CONTROLLER_AGENT;

use crate::bench::is_renewal;

/// The writes of one context. The logs contain all contexts, so each is read only once, incrementally.
pub(super) struct Journal {
    namespace: String,
    logs: [AuditLog; 2],
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    places: [u64; 2],
    writes: Vec<Write>,
}

impl Journal {
    pub(super) fn begin(namespace: &str, logs: [AuditLog; 2]) -> anyhow::Result<Self> {
        let places = [logs[0].end()?, logs[1].end()?];
        let read = Mutex::new(Read { places, writes: Vec::new() });
        Ok(Self { namespace: namespace.to_owned(), logs, read })
    }

    /// Every write so far, in order.
    pub(super) fn writes(&self) -> anyhow::Result<Vec<Write>> {
        let query = AuditQuery::all().user_agent(CONTROLLER_AGENT).writes();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let Read { places, writes } = &mut *read;
        for (log, place) in self.logs.iter().zip(places) {
            let (records, next) = log.read_from(*place, &query)?;
            *place = next;
            writes.extend(records.iter().filter(|record| self.is_ours(record)).map(write));
        }
        writes.sort_by_key(|write| write.time);
        Ok(writes.clone())
    }

    /// Nodes and the agents' ConfigMaps are matched by their names, which contain that of the context.
    fn is_ours(&self, record: &AuditRecord) -> bool {
        let object = &record.object;
        record.stage == "ResponseComplete"
            // The Lease of an instance is renewed independently of the objects.
            && !is_renewal(record)
            && (object.namespace == self.namespace || object.name.contains(&self.namespace))
    }
}

fn write(record: &AuditRecord) -> Write {
    let object = &record.object;
    let part = if object.subresource.is_empty() { String::new() } else { format!("/{}", object.subresource) };
    Write {
        time: record.received,
        verb: record.verb.clone(),
        resource: format!("{}{part}", object.resource),
        name: object.name.clone(),
        code: record.code,
    }
}
