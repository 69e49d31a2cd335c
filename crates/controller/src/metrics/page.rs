//! The page that Prometheus reads.

use super::families::LENT_SECONDS;
use super::{Metrics, lock};
use five_spot_cluster::Connection;
use five_spot_cluster::view::{AgentState, agent_states};
use prometheus::TextEncoder;
use prometheus::proto::MetricFamily;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// The content type of the page: the text format, version 0.0.4.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// The labels of what has none.
const NO_LABELS: &[&str] = &[];

impl Metrics {
    /// The page as it is now.
    ///
    /// # Panics
    /// Never: text can always be written into memory.
    #[must_use]
    pub fn page(&self) -> String {
        let connection = lock(&self.connection).clone();
        if let Some(connection) = &connection {
            self.catch_up(connection);
        }
        self.count_agents();
        // Asked of the guard at this moment: a process that was stopped for longer than the Lease lasts leads no more.
        let leads = lock(&self.leadership).as_ref().is_none_or(|guard| guard.is_held())
            && lock(&self.instance).as_ref().is_none_or(|guard| guard.is_open());
        self.families.is_leader.set(f64::from(u8::from(leads)));
        let count = lock(&self.shard_objects).clone();
        let objects = count.map(|count| count()).unwrap_or_default();
        for (state, count) in
            [("owned", objects.owned), ("foreign", objects.foreign), ("waiting", objects.waiting)]
        {
            #[allow(clippy::cast_precision_loss)]
            self.families.shard_objects.with_label_values(&[state]).set(count as f64);
        }
        let oldest =
            lock(&self.next_due).map_or(Duration::ZERO, |due| Instant::now().saturating_duration_since(due));
        self.families.queue_oldest_waiting.set(oldest.as_secs_f64());
        // In the order of names.
        let families = self.registry.gather();
        let (before, after) =
            families.split_at(families.partition_point(|family| family.name() < LENT_SECONDS));
        let mut page = String::new();
        let encode = |families: &[MetricFamily], page: &mut String| {
            TextEncoder::new().encode_utf8(families, page).expect("memory takes everything");
        };
        encode(before, &mut page);
        lock(&self.objects).write_lent(connection.as_ref().map(Connection::now), &mut page);
        encode(after, &mut page);
        page
    }

    /// Counts the reclaim agents by their state, as the caches show them.
    fn count_agents(&self) {
        let keys = lock(&self.objects).with_agents();
        let states =
            lock(&self.caches).upgrade().map_or_else(Vec::new, |caches| agent_states(&caches, &keys));
        for state in AgentState::ALL {
            let count = states.iter().filter(|one| **one == state).count();
            #[allow(clippy::cast_precision_loss)]
            self.families.agents.with_label_values(&[state.as_str()]).set(count as f64);
        }
    }

    /// Brings up to date what changes with time alone.
    fn catch_up(&self, connection: &Connection) {
        let now = connection.now();
        let next_boundary = lock(&self.objects).next_boundary(now);
        match next_boundary {
            #[allow(clippy::cast_precision_loss)]
            Some(time) => {
                self.families.next_boundary.with_label_values(NO_LABELS).set(time.as_second() as f64);
            }
            // It fails only where there is none already.
            None => drop(self.families.next_boundary.remove_label_values(NO_LABELS)),
        }
        let mut ages: BTreeMap<String, Duration> = BTreeMap::new();
        for (watch, age) in connection.transport().watch_ages() {
            let oldest = ages.entry(resource(&watch).to_owned()).or_default();
            *oldest = age.max(*oldest);
        }
        self.families.watch_age.reset();
        for (resource, age) in ages {
            self.families.watch_age.with_label_values(&[&resource]).set(age.as_secs_f64());
        }
        self.families.workload_credential_expiry.reset();
        for (secret, at) in connection.credential_expiries().all() {
            let (namespace, name) = secret.split_once('/').unwrap_or(("", secret.as_str()));
            let gauge = self.families.workload_credential_expiry.with_label_values(&[namespace, name]);
            #[allow(clippy::cast_precision_loss)]
            gauge.set(at.as_second() as f64);
        }
    }
}

/// The resource that a watch is about: the end of its path. Names of objects never become labels.
fn resource(watch: &str) -> &str {
    let path = watch.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}
