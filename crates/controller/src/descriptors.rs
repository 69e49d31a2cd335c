//! File descriptors: every connection is one, and with none left no probe is answered.
//!
//! The limit is raised at the start as far as the system permits. Connections to workload clusters may use all but a
//! reserve of it, so that the management cluster, probes and scrapes always find one.

use crate::health::{Findings, Health};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, Opts};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::ErrorKind;
use std::time::Duration;
use tracing::{info, warn};

/// Descriptors that connections to workload clusters leave to everyone else: the watches of the management cluster, what is
/// served, and the program's own files.
const RESERVE: u64 = 256;

/// The most connections to workload clusters, whatever the limit: a hundred thousand watches are beyond one process.
const MOST_CONNECTIONS: u64 = 65_536;

/// The part of the limit, in percent, from which on the controller is not ready.
const NEAR: u64 = 90;

/// The time between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Raises the limit to the most that the system permits. Returns the limit.
pub fn raise() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    if limits.current < limits.maximum || limits.maximum.is_none() && limits.current.is_some() {
        let raised = Rlimit { current: limits.maximum, maximum: limits.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => info!(from = limits.current, to = limits.maximum, "Raised the limit of open files"),
            Err(error) => warn!(%error, limit = limits.current, "Failed to raise the limit of open files"),
        }
    }
    limit()
}

/// The number of connections to workload clusters that fit into a limit.
#[must_use]
pub fn workload_connections(limit: u64) -> usize {
    let most = limit.saturating_sub(RESERVE).clamp(16, MOST_CONNECTIONS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The number of open descriptors, 0 if the system does not show them. The limit if they cannot be counted for another
/// reason: then none is left to count with.
fn open() -> u64 {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => entries.count() as u64,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(_) => limit(),
    }
}

/// The findings for a number of open descriptors.
fn judge(open: u64, limit: u64) -> Findings {
    let near = u128::from(open) * 100 >= u128::from(limit) * u128::from(NEAR);
    let obstacle = format!(
        "{open} of {limit} file descriptors are open: raise the limit of the container, or look for clusters that keep \
         connections open"
    );
    Findings { obstacles: near.then_some(obstacle).into_iter().collect(), remarks: Vec::new() }
}

/// Checks regularly how many are open, for as long as it is polled.
pub(crate) async fn examine(health: &Health) {
    loop {
        let findings = judge(open(), limit());
        if health.examined("file descriptors", &findings) {
            for obstacle in &findings.obstacles {
                warn!(obstacle, "Running out of file descriptors");
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Open descriptors and their limit, under the names that every Prometheus client gives them. Read for each scrape.
pub(crate) struct Descriptors {
    open: Gauge,
    limit: Gauge,
}

impl Descriptors {
    pub(crate) fn new() -> Self {
        let gauge =
            |name: &str, help: &str| Gauge::with_opts(Opts::new(name, help)).expect("a name and help");
        Self {
            open: gauge("process_open_fds", "Number of open file descriptors"),
            limit: gauge("process_max_fds", "Maximum number of open file descriptors"),
        }
    }
}

impl Collector for Descriptors {
    fn desc(&self) -> Vec<&Desc> {
        [&self.open, &self.limit].into_iter().flat_map(Collector::desc).collect()
    }

    #[allow(clippy::cast_precision_loss)]
    fn collect(&self) -> Vec<MetricFamily> {
        self.open.set(open() as f64);
        self.limit.set(limit() as f64);
        [&self.open, &self.limit].into_iter().flat_map(Collector::collect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearing_the_limit_is_an_obstacle() {
        assert_eq!(judge(899, 1000), Findings::default());
        let obstacles = judge(900, 1000).obstacles;
        assert!(obstacles[0].starts_with("900 of 1000 file descriptors are open"), "{obstacles:?}");
        assert_eq!(judge(10_000, u64::MAX), Findings::default());
    }

    #[test]
    fn workload_clusters_leave_a_reserve() {
        assert_eq!(workload_connections(1024), 768);
        assert_eq!(workload_connections(100), 16, "a few there must be");
        assert_eq!(workload_connections(u64::MAX), 65_536);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let raised = raise();
        assert_eq!(Some(raised), getrlimit(Resource::Nofile).maximum.or(Some(u64::MAX)));
        assert!((3..raised).contains(&open()), "standard streams at least");
    }
}
