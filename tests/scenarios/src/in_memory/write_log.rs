//! The writes of the controller, as its transport reports them.

use super::link::LEASE_NAME;
use super::neighbours::HOSTILE_NAMESPACE;
use crate::environment::Write;
use crate::oracles::list_writes;
use five_spot_apiserver::Clock;
use five_spot_cluster::{Call, Exchange, RequestObserver};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every write of every controller run.
pub(super) struct WriteLog {
    clock: Clock,
    writes: Mutex<Vec<Write>>,
}

impl WriteLog {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, writes: Mutex::default() }
    }

    pub(super) fn writes(&self) -> Vec<Write> {
        self.lock().clone()
    }

    pub(super) fn list(&self) -> String {
        list_writes(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestObserver for WriteLog {
    fn answered(&self, exchange: &Exchange) {
        let call = &exchange.call;
        if !call.writes() || is_of_neighbour(call) || is_coordination(call) {
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

/// Returns true if a call renews a Lease of the election or of an instance.
fn is_coordination(call: &Call) -> bool {
    call.resource == "leases" && call.name.as_ref().is_some_and(|name| name.starts_with(LEASE_NAME))
}

/// Returns true if a call is about something of the hostile tenant, whose Nodes are called like its namespace.
fn is_of_neighbour(call: &Call) -> bool {
    let is_named = |name: &String| name.starts_with(HOSTILE_NAMESPACE);
    call.namespace.as_ref().or(call.name.as_ref()).is_some_and(is_named)
}
