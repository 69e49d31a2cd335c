//! The requests of the controller, from the audit logs and its own metrics.

use std::time::Duration;
use std::{fmt, io};

use anyhow::{Context as _, ensure};
use five_spot_api::names;
use five_spot_testenv::audit::{AuditLog, AuditQuery, AuditRecord};
use five_spot_testenv::cluster::{CONTROLLER_AGENT, HARNESS_AGENT};

/// The pause between two reads of an audit log. The times in it are the API server's own, whenever they are read.
const LOG_READ_EVERY: Duration = Duration::from_millis(5);

/// The longest wait for a record in an audit log: no figure is as long.
const LOGGED_WITHIN: Duration = Duration::from_mins(3);

/// The number of requests so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) reads: u64,
    /// Without the renewals of the instance's Lease, which are sent every ten seconds in any case.
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
                    _ if is_renewal(&record) => {}
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

/// Reads an audit log from a position on until the records have what is looked for.
pub(super) async fn logged<T>(
    log: &AuditLog,
    place: u64,
    query: &AuditQuery,
    find: impl Fn(&[AuditRecord]) -> Option<T>,
) -> anyhow::Result<T> {
    let found = async {
        loop {
            if let Some(found) = find(&log.read_from(place, query)?.0) {
                return anyhow::Ok(found);
            }
            tokio::time::sleep(LOG_READ_EVERY).await;
        }
    };
    tokio::time::timeout(LOGGED_WITHIN, found).await.context("not in the audit log")?
}

/// True for a DELETE of the Machine of this object that was accepted.
pub(super) fn is_machine_delete(record: &AuditRecord, object: &str) -> bool {
    record.object.name == names::machine(object) && record.verb == "delete" && record.code == Some(200)
}

/// The time from the arrival of a kill switch that the harness has set to that of the Machine's DELETE.
pub(super) async fn kill_switch_to_delete(
    log: &AuditLog,
    place: u64,
    object: &str,
) -> anyhow::Result<Duration> {
    let writes = AuditQuery::all().writes();
    let took = logged(log, place, &writes, |records| {
        let is_change = |record: &&AuditRecord| {
            record.object.name == object && record.user_agent.starts_with(HARNESS_AGENT)
        };
        let change = records.iter().find(is_change)?;
        let delete = records.iter().find(|record| is_machine_delete(record, object))?;
        Some(delete.received.duration_since(change.received))
    });
    Ok(Duration::try_from(took.await.context("no Machine was deleted")?).unwrap_or_default())
}

/// The Lease by which replicas elect their leader, as shipped.
const LEADER_LEASE: &str = "5spot-leader";

/// True for renewals of the Lease of an instance or of the leader.
pub(crate) fn is_renewal(record: &AuditRecord) -> bool {
    let name = &record.object.name;
    record.object.resource == "leases" && (name.contains("-instance-") || name == LEADER_LEASE)
}

/// All requests but watches, by the metrics of the controller.
pub(super) fn own_count(metrics: &str) -> u64 {
    count_of_verbs(metrics, |line| !line.contains("verb=\"watch\""))
}

/// All writes, by the metrics of the controller.
pub(super) fn own_writes(metrics: &str) -> u64 {
    let reads = ["get", "list", "watch"].map(|verb| format!("verb=\"{verb}\""));
    count_of_verbs(metrics, |line| reads.iter().all(|verb| !line.contains(verb)))
}

fn count_of_verbs(metrics: &str, is_meant: impl Fn(&str) -> bool) -> u64 {
    let requests = metrics.lines().filter(|line| line.starts_with("fivespot_api_requests_total{"));
    let requests = requests.filter(|line| is_meant(line));
    requests.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Ticks of the kernel's accounting in a second.
const TICKS: f64 = 100.0;

/// The time that a process has used, in user and kernel mode, in ticks.
pub(super) fn cpu_ticks(pid: u32) -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program, in parentheses, may have spaces.
    let (_, rest) = stat.rsplit_once(')').context("no such process")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    ensure!(fields.len() > 12, "{stat}");
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

/// Ticks in seconds.
#[allow(clippy::cast_precision_loss)]
pub(super) fn seconds_of(ticks: u64) -> f64 {
    ticks as f64 / TICKS
}

/// The share of one core, in percent, of a process that has used so many ticks in this time.
pub(super) fn share_of_core(ticks: u64, time: Duration) -> f64 {
    seconds_of(ticks) / time.as_secs_f64() * 100.0
}

/// The memory of a process, as the kernel counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The resident memory, including the pages of the program itself, which are loaded on demand.
    pub(crate) resident: u64,
    /// The anonymous memory: heap and stacks.
    pub(crate) anonymous: u64,
}

impl Memory {
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Self { resident: bytes(&status, "VmRSS:"), anonymous: bytes(&status, "RssAnon:") })
    }

    /// The most resident memory that a process has had since it started.
    pub(crate) fn peak_of(pid: u32) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(bytes(&status, "VmHWM:"))
    }
}

/// A figure of `/proc/PID/status`, in bytes.
fn bytes(status: &str, name: &str) -> u64 {
    let kilobytes: Option<u64> =
        status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0) * 1024
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KB, {} KB of it anonymous", self.resident / 1024, self.anonymous / 1024)
    }
}
