//! The facts by machine. A fleet has thousands of machines, and each of them is judged by its own Machine, events and log lines.

use super::facts::DoctorFacts;
use super::json::{name, namespace, text};
use super::logs::LogLine;
use serde_json::Value;
use std::collections::BTreeMap;

/// A namespace and a name.
type Key<'a> = (&'a str, &'a str);

/// The facts by machine.
pub(super) struct Index<'a> {
    /// The Machines of Cluster API.
    capi_machines: BTreeMap<Key<'a>, &'a Value>,
    /// The latest event `ReconcileFailed` about each object.
    failures: BTreeMap<Key<'a>, &'a Value>,
    /// The log lines of the controller about each object, the newest of each pod first.
    log: BTreeMap<Key<'a>, Vec<&'a LogLine>>,
    /// The number of machines of each time zone, by namespace.
    zones: BTreeMap<&'a str, BTreeMap<&'a str, usize>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(facts: &'a DoctorFacts) -> Self {
        let mut capi_machines = BTreeMap::new();
        for machine in &facts.capi_machines {
            capi_machines.entry((namespace(machine), name(machine))).or_insert(machine);
        }
        let failures = facts.events.iter().filter(|event| text(event, "/reason") == "ReconcileFailed");
        let failures = failures
            .map(|event| ((text(event, "/regarding/namespace"), text(event, "/regarding/name")), event))
            .collect();
        let mut log: BTreeMap<Key<'a>, Vec<&LogLine>> = BTreeMap::new();
        for line in facts.pods().iter().flat_map(|pod| pod.log.iter().rev()) {
            log.entry((line.field("namespace"), line.field("resource"))).or_default().push(line);
        }
        let mut zones: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for machine in &facts.machines {
            let zone = text(&machine.object, "/spec/schedule/timezone");
            *zones.entry(machine.namespace()).or_default().entry(zone).or_default() += 1;
        }
        Self { capi_machines, failures, log, zones }
    }

    pub(super) fn capi_machine(&self, namespace: &str, name: &str) -> Option<&'a Value> {
        self.capi_machines.get(&(namespace, name)).copied()
    }

    pub(super) fn failure(&self, namespace: &str, name: &str) -> Option<&'a Value> {
        self.failures.get(&(namespace, name)).copied()
    }

    pub(super) fn log<'b>(&'b self, namespace: &'b str, name: &'b str) -> &'b [&'a LogLine] {
        self.log.get(&(namespace, name)).map_or(&[], Vec::as_slice)
    }

    /// The time zones of a namespace, each with the number of its machines.
    pub(super) fn zones(&self, namespace: &str) -> impl Iterator<Item = (&'a str, usize)> {
        self.zones.get(namespace).into_iter().flatten().map(|(zone, count)| (*zone, *count))
    }
}
