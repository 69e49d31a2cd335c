//! The requests of the controller, from the audit logs and its own metrics.

use std::{fmt, io};

use five_spot_testenv::audit::{AuditLog, AuditQuery};
use five_spot_testenv::cluster::CONTROLLER_AGENT;

/// The number of requests so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Watches that were opened.
    pub(super) watches: u64,
    /// Everything but watches, as the controller counts it: audit logs leave out discovery.
    pub(super) by_its_own_count: u64,
}

impl Usage {
    /// Reads the requests from the audit logs and from the controller's metrics.
    pub(super) fn read(logs: &[AuditLog], metrics: &str) -> io::Result<Self> {
        let mut usage = Self { by_its_own_count: own_count(metrics), ..Self::default() };
        for log in logs {
            for record in log.read(&AuditQuery::all().user_agent(CONTROLLER_AGENT))? {
                match (record.verb.as_str(), record.stage.as_str()) {
                    ("watch", "ResponseStarted") => usage.watches += 1,
                    ("watch", _) | (_, "ResponseStarted") => {}
                    ("get" | "list", _) => usage.reads += 1,
                    (_, _) => usage.writes += 1,
                }
            }
        }
        Ok(usage)
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            watches: self.watches - before.watches,
            by_its_own_count: self.by_its_own_count - before.by_its_own_count,
        }
    }

    /// Everything but watches.
    pub(super) fn total(&self) -> u64 {
        self.reads + self.writes
    }
}

fn own_count(metrics: &str) -> u64 {
    let requests = metrics
        .lines()
        .filter(|line| line.starts_with("fivespot_api_requests_total{") && !line.contains("verb=\"watch\""));
    requests.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// The memory of a process, as the kernel counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// All of it, the pages of the program itself included, which come as they are needed.
    pub(crate) resident: u64,
    /// The anonymous memory: heap and stacks.
    pub(crate) anonymous: u64,
}

impl Memory {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let bytes = |name: &str| {
            let kilobytes: Option<u64> = status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
            kilobytes.unwrap_or(0) * 1024
        };
        Ok(Self { resident: bytes("VmRSS:"), anonymous: bytes("RssAnon:") })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KB, {} KB of it anonymous", self.resident / 1024, self.anonymous / 1024)
    }
}
