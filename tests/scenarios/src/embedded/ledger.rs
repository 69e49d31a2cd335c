//! What the controller writes for the scenario, as its own door tells.

use super::neighbours::HOSTILE_NAMESPACE;
use crate::oracles::told;
use crate::world::Write;
use five_spot_apiserver::Clock;
use five_spot_cluster::{Exchange, Witness};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every write of every incarnation.
pub(super) struct Ledger {
    clock: Clock,
    writes: Mutex<Vec<Write>>,
}

impl Ledger {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, writes: Mutex::default() }
    }

    pub(super) fn writes(&self) -> Vec<Write> {
        self.lock().clone()
    }

    pub(super) fn told(&self) -> String {
        told(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for Ledger {
    fn answered(&self, exchange: &Exchange) {
        let call = &exchange.call;
        if !call.writes() || call.namespace.as_deref() == Some(HOSTILE_NAMESPACE) {
            return;
        }
        let part = call.subresource.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
        self.lock().push(Write {
            time: self.clock.now(),
            verb: call.verb.to_owned(),
            resource: format!("{}{part}", call.resource),
            name: call.name.clone().unwrap_or_default(),
            code: exchange.status.map(|status| status.as_u16()),
        });
    }
}
