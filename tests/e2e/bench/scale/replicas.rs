//! Two replicas of the controller, of which one leads. When the leader is killed, another one is started.

use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::audit::{AuditLog, AuditQuery};
use five_spot_testenv::cluster::CONTROLLER_AGENT;
use jiff::Timestamp;

use super::openings::seconds_since;
use super::progress::is_write;
use super::site::Site;
use crate::bench::measure::Memory;
use crate::leaders::is_leader;
use crate::startup::Program;

/// The duration of the Lease: short, so that most of a storm is work and not waiting.
pub(super) const LEASE: Duration = Duration::from_secs(6);

/// The time after its last renewal for which a leader continues.
const RENEW_DEADLINE: Duration = Duration::from_secs(4);

const COUNT: usize = 2;

/// For a machine that has much else to do.
const WITHIN: Duration = Duration::from_mins(3);

/// Metrics do not notify anyone of a change.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The number of warnings and errors of a replica that are printed if the measurement fails.
const PROBLEMS: usize = 30;

/// The replicas that run.
pub(super) struct Replicas<'a> {
    site: &'a Site,
    namespace: &'static str,
    running: Vec<Program>,
    /// The number of replicas that were started so far: each has a name of its own.
    started: usize,
    /// The most memory of any replica so far.
    peak: u64,
}

impl<'a> Replicas<'a> {
    pub(super) async fn start(site: &'a Site, namespace: &'static str) -> anyhow::Result<Self> {
        let mut replicas = Self { site, namespace, running: Vec::new(), started: 0, peak: 0 };
        for _ in 0..COUNT {
            replicas.start_one().await?;
        }
        Ok(replicas)
    }

    async fn start_one(&mut self) -> anyhow::Result<()> {
        let name = format!("replica-{}", self.started);
        self.started += 1;
        let program = self.site.replica(&name, self.namespace, [LEASE, RENEW_DEADLINE]).await?;
        self.running.push(program);
        Ok(())
    }

    /// Kills the leader with SIGKILL, and starts another replica.
    pub(super) async fn kill_leader(&mut self) -> anyhow::Result<Killed> {
        let leader = self.leader().await?;
        self.note_memory()?;
        let program = self.running.remove(leader);
        let killed = Killed { pod: program.name().to_owned(), at: Timestamp::now() };
        program.kill().await;
        self.start_one().await?;
        Ok(killed)
    }

    /// Waits until one of the replicas leads.
    async fn leader(&self) -> anyhow::Result<usize> {
        let found = async {
            loop {
                for (number, program) in self.running.iter().enumerate() {
                    if is_leader(program).await? {
                        return anyhow::Ok(number);
                    }
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::time::timeout(WITHIN, found).await.context("no replica leads")?
    }

    /// Records the memory of all replicas. Fails if one of them has ended.
    pub(super) fn note_memory(&mut self) -> anyhow::Result<()> {
        for program in &self.running {
            let peak = Memory::peak_of(program.pid())
                .with_context(|| format!("{} has ended; its log:\n{}", program.name(), program.log()))?;
            self.peak = self.peak.max(peak);
        }
        Ok(())
    }

    /// Prints the last warnings and errors of each replica.
    pub(super) fn print_problems(&self) {
        for program in &self.running {
            let log = program.log();
            let problems: Vec<&str> = log.lines().filter(|line| is_problem(line)).collect();
            eprintln!("the last of {} warnings and errors of {}:", problems.len(), program.name());
            for line in &problems[problems.len().saturating_sub(PROBLEMS)..] {
                eprintln!("{line}");
            }
        }
    }

    /// The most memory that any replica has had.
    pub(super) fn peak(&mut self) -> anyhow::Result<u64> {
        self.note_memory()?;
        Ok(self.peak)
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        for program in self.running {
            program.stop().await?;
        }
        Ok(())
    }
}

fn is_problem(line: &str) -> bool {
    ["\"level\":\"WARN\"", "\"level\":\"ERROR\""].iter().any(|level| line.contains(level))
}

/// A leader that was killed.
pub(super) struct Killed {
    pub(super) pod: String,
    at: Timestamp,
}

impl Killed {
    /// The time from the kill to the first write of another replica. Requests to workload clusters are not counted: they have
    /// the token of the kubeconfig, which is that of no pod.
    pub(super) fn takeover(&self, log: &AuditLog, place: u64) -> anyhow::Result<Duration> {
        let query = AuditQuery::all().user_agent(CONTROLLER_AGENT).since(self.at);
        let (records, _) = log.read_from(place, &query)?;
        let by_another = records.iter().filter(|record| {
            let is_other = !record.pod.is_empty() && record.pod != self.pod;
            is_other && record.verb != "watch" && is_write(record)
        });
        let first = by_another.map(|record| record.received).min();
        let first = first.with_context(|| format!("no replica has written anything after {}", self.pod))?;
        Ok(seconds_since(self.at, first))
    }
}
