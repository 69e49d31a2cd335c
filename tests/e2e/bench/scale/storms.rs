//! All windows open at one minute and close at another, while leaders are killed and the API server is restarted.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::names::{self, SYSTEM_NAMESPACE};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::machine_writes::MachineWrites;
use super::nodes::Nodes;
use super::objects::{self, Window};
use super::openings::{AFTERWARDS, LENT, SILENCE, is_contacted, preparation, seconds_since};
use super::progress::{Progress, Steps};
use super::replicas::{Killed, LEASE, Replicas};
use super::report::StormsReport;
use super::site::{Site, minute_after};

/// The time that the start of the replicas takes, at most.
const START: Duration = Duration::from_secs(30);

/// The pause between two looks at the log.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The time between two lines about the progress.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// The time without writes after which all objects are read, although the log does not show that all have finished: an
/// answer can be missing in it. Longer than a takeover.
const STANDSTILL: Duration = Duration::from_secs(20);

/// The pause between two reads of all objects.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// Pods on each Node.
const PODS: usize = 2;

/// The measurement.
pub(super) struct Storms {
    pub(super) objects: usize,
    /// The number of machines whose Node is drained.
    pub(super) nodes: usize,
}

/// The kind of storm.
#[derive(Clone, Copy)]
enum Direction {
    Opening,
    Closing,
}

impl Direction {
    const fn word(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Closing => "closing",
        }
    }

    /// True if an object has made the step that counts in this storm.
    fn is_done(self, steps: &Steps) -> bool {
        match self {
            Self::Opening => steps.active.is_some(),
            Self::Closing => steps.deleted.is_some(),
        }
    }
}

impl Storms {
    pub(super) async fn measure(&self, site: &Site) -> anyhow::Result<StormsReport> {
        ensure!(self.nodes <= self.objects, "there are more Nodes than objects");
        site.namespace(LENT).await?;
        let opens = minute_after(preparation(self.objects) + START)?;
        let closes = opens + self.room();
        site.create(LENT, 0..self.objects, &Window::OpensAndCloses(opens, closes)).await?;
        eprintln!("{} objects are there; their windows open at {opens} and close at {closes}", self.objects);
        let mut replicas = self.contact(site, opens).await?;
        let measured = Box::pin(self.open_and_close(site, &mut replicas, opens, closes)).await;
        if measured.is_err() {
            // Their logs are removed with the API server.
            replicas.print_problems();
        }
        let report = measured?;
        replicas.stop().await?;
        Ok(report)
    }

    async fn open_and_close(
        &self,
        site: &Site,
        replicas: &mut Replicas<'_>,
        opens: Timestamp,
        closes: Timestamp,
    ) -> anyhow::Result<StormsReport> {
        let mut opening = Storm::new(self.objects, Direction::Opening, site, opens, closes).await?;
        opening.until(replicas, self.objects / 3).await?;
        let killed = opening.kill_leader(replicas).await?;
        opening.until(replicas, self.objects * 2 / 3).await?;
        let api_server = site.restart_api_server().await?;
        eprintln!("the API server was restarted in {:.1} s", api_server.as_secs_f64());
        let opening_time = opening.finish(replicas, None).await?;
        let opening_takeover = opening.takeover(&killed)?;
        let writes = opening.machine_writes()?;
        let mut answers_lost = writes.check_opening(self.objects, 2)?;
        let machines_created = writes.created();

        let nodes = Nodes { site, namespace: LENT, numbers: self.numbers_with_node(), pods: PODS };
        nodes.join().await?;
        nodes.until_known(closes).await?;
        eprintln!("{} machines have a Node", self.nodes);
        ensure!(Timestamp::now() < closes, "the windows closed before all Nodes were known");

        let ends = closes + self.room();
        let mut closing = Storm::new(self.objects, Direction::Closing, site, closes, ends).await?;
        closing.until(replicas, self.objects / 2).await?;
        let killed = closing.kill_leader(replicas).await?;
        let closing_time = closing.finish(replicas, Some(&nodes)).await?;
        let closing_takeover = closing.takeover(&killed)?;
        let writes = closing.machine_writes()?;
        answers_lost += writes.check_closing(self.objects, 1)?;

        closing.progress.until_silent(SILENCE).await?;
        let writes_afterwards = no_writes(site).await?;
        Ok(StormsReport {
            objects: self.objects,
            nodes: self.nodes,
            lease_seconds: LEASE.as_secs(),
            opening_seconds: opening_time.as_secs_f64(),
            closing_seconds: closing_time.as_secs_f64(),
            opening_takeover_seconds: opening_takeover.as_secs_f64(),
            closing_takeover_seconds: closing_takeover.as_secs_f64(),
            api_server_seconds: api_server.as_secs_f64(),
            peak_memory: replicas.peak()?,
            machines_created,
            machines_deleted: writes.deleted(),
            answers_lost,
            writes_afterwards,
        })
    }

    /// The time that a storm has, with two takeovers, a restart of the API server, and the creation of the Nodes. In whole
    /// minutes, as windows are.
    fn room(&self) -> Duration {
        let each = |time: Duration, count: usize| time * u32::try_from(count).unwrap_or(u32::MAX);
        let needed = Duration::from_mins(2)
            + each(Duration::from_millis(60), self.objects)
            + each(Duration::from_millis(120), self.nodes);
        Duration::from_mins(needed.as_secs() / 60 + 1)
    }

    /// The objects whose machines get a Node: some everywhere in the order of names.
    fn numbers_with_node(&self) -> Vec<usize> {
        (0..self.nodes).map(|node| node * self.objects / self.nodes).collect()
    }

    /// Starts the replicas, and waits until the leader has seen all objects.
    async fn contact<'a>(&self, site: &'a Site, opens: Timestamp) -> anyhow::Result<Replicas<'a>> {
        let mut progress = Progress::follow(site.audit_log())?;
        let replicas = Replicas::start(site, LENT).await?;
        loop {
            progress.read()?;
            let contacted = progress.steps.values().filter(|steps| is_contacted(steps)).count();
            if contacted >= self.objects {
                eprintln!("the leader has seen all objects");
                return Ok(replicas);
            }
            ensure!(Timestamp::now() < opens, "the windows opened when {contacted} objects were known");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// A storm that is followed in the audit log.
struct Storm<'a> {
    site: &'a Site,
    objects: usize,
    direction: Direction,
    begins: Timestamp,
    /// The time at which it has to be over.
    deadline: Timestamp,
    /// The place in the log at which it began.
    place: u64,
    progress: Progress,
    said: Instant,
}

impl<'a> Storm<'a> {
    /// Waits until it begins.
    async fn new(
        objects: usize,
        direction: Direction,
        site: &'a Site,
        begins: Timestamp,
        deadline: Timestamp,
    ) -> anyhow::Result<Self> {
        let place = site.audit_log().end()?;
        let progress = Progress::follow(site.audit_log())?;
        tokio::time::sleep(seconds_since(Timestamp::now(), begins)).await;
        eprintln!("the {} begins", direction.word());
        Ok(Self { site, objects, direction, begins, deadline, place, progress, said: Instant::now() })
    }

    /// Reads until so many objects are done.
    async fn until(&mut self, replicas: &mut Replicas<'_>, count: usize) -> anyhow::Result<()> {
        while self.look(replicas)? < count {
            ensure!(Timestamp::now() < self.deadline, "{}", self.unfinished());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Reads the log, and returns the number of objects that are done.
    fn look(&mut self, replicas: &mut Replicas<'_>) -> anyhow::Result<usize> {
        self.progress.read()?;
        replicas.note_memory()?;
        let done = self.progress.steps.values().filter(|steps| self.direction.is_done(steps)).count();
        if self.said.elapsed() >= SAY_EVERY {
            self.said = Instant::now();
            eprintln!("{}: {done} of {} machines", self.direction.word(), self.objects);
        }
        Ok(done)
    }

    async fn kill_leader(&self, replicas: &mut Replicas<'_>) -> anyhow::Result<Killed> {
        let killed = replicas.kill_leader().await?;
        eprintln!(
            "{}: the leader {} was killed, and another replica started",
            self.direction.word(),
            killed.pod
        );
        Ok(killed)
    }

    /// Reads until all objects are in the right phase with exactly what belongs to them. Returns the time from the beginning
    /// of the storm to the last write of a status.
    async fn finish(
        &mut self,
        replicas: &mut Replicas<'_>,
        drained: Option<&Nodes<'_>>,
    ) -> anyhow::Result<Duration> {
        let (mut writes, mut written) = (self.progress.writes, Instant::now());
        loop {
            let done = self.look(replicas)?;
            if self.progress.writes != writes {
                (writes, written) = (self.progress.writes, Instant::now());
            }
            if done >= self.objects || written.elapsed() > STANDSTILL {
                match self.check(drained).await {
                    Ok(()) => break,
                    Err(error) if Timestamp::now() > self.deadline => {
                        let word = self.direction.word();
                        return Err(error.context(format!("{word}: not over at {}", self.deadline)));
                    }
                    Err(error) => eprintln!("{}: not yet: {error:#}", self.direction.word()),
                }
                tokio::time::sleep(CHECK_EVERY).await;
            }
            ensure!(Timestamp::now() <= self.deadline || done >= self.objects, "{}", self.unfinished());
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.progress.read()?;
        let last = self.progress.steps.values().filter_map(|steps| steps.last_report).max();
        let took = seconds_since(self.begins, last.context("no status was written")?);
        eprintln!("{}: {:.1} s", self.direction.word(), took.as_secs_f64());
        Ok(took)
    }

    async fn check(&self, drained: Option<&Nodes<'_>>) -> anyhow::Result<()> {
        match self.direction {
            Direction::Opening => self.site.check(LENT, self.objects).await?,
            Direction::Closing => {
                self.site.check(LENT, 0).await?;
                no_claims(self.site).await?;
            }
        }
        match drained {
            Some(nodes) => nodes.are_drained().await,
            None => Ok(()),
        }
    }

    /// Describes the objects that are not done.
    fn unfinished(&self) -> String {
        let is_done = |number: usize| {
            self.progress.steps.get(&number).is_some_and(|steps| self.direction.is_done(steps))
        };
        let others: Vec<usize> = (0..self.objects).filter(|number| !is_done(*number)).collect();
        let first = others.first().map_or_else(|| "none".to_owned(), |number| objects::name(*number));
        let (word, count) = (self.direction.word(), others.len());
        format!("{word}: {count} objects were not done at {}, {first} among them", self.deadline)
    }

    fn takeover(&self, killed: &Killed) -> anyhow::Result<Duration> {
        let took = killed.takeover(&self.site.audit_log(), self.place)?;
        let (word, seconds) = (self.direction.word(), took.as_secs_f64());
        eprintln!("{word}: the next leader wrote {seconds:.1} s after {} was killed", killed.pod);
        Ok(took)
    }

    fn machine_writes(&self) -> anyhow::Result<MachineWrites> {
        let writes = MachineWrites::read(&self.site.audit_log(), self.place)?;
        let word = self.direction.word();
        eprintln!("{word}: {} Machines created, {} deleted", writes.created(), writes.deleted());
        Ok(writes)
    }
}

/// Checks that no machine is claimed.
async fn no_claims(site: &Site) -> anyhow::Result<()> {
    let leases: Api<Lease> = Api::namespaced(site.admin(), SYSTEM_NAMESPACE);
    let leases = leases.list(&ListParams::default()).await?;
    let claim = leases.items.iter().find(|lease| names::claimed_machine(&lease.name_any()).is_some());
    let holder =
        |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    claim.map_or(Ok(()), |lease| {
        Err(anyhow::anyhow!("Lease {} of {} is left", lease.name_any(), holder(lease)))
    })
}

/// Checks that nothing is written for a while.
async fn no_writes(site: &Site) -> anyhow::Result<u64> {
    let begun = Timestamp::now();
    let mut progress = Progress::follow(site.audit_log())?;
    tokio::time::sleep(AFTERWARDS).await;
    progress.read()?;
    if progress.writes > 0 {
        let objects: Vec<String> = progress.steps.keys().copied().map(objects::name).collect();
        anyhow::bail!(
            "{} writes although nothing has changed: {:?}, objects {objects:?}, events {:#?}",
            progress.writes,
            progress.requests,
            events_since(site, begun).await?
        );
    }
    Ok(0)
}

/// The events since a time. The audit log does not tell what they are about.
async fn events_since(site: &Site, begun: Timestamp) -> anyhow::Result<Vec<String>> {
    let events = Api::<Event>::all(site.admin()).list(&ListParams::default()).await?.items.into_iter();
    let is_recent = |event: &Event| event.event_time.as_ref().is_some_and(|time| time.0 >= begun);
    let describe = |event: Event| {
        let (name, reason) = (event.name_any(), event.reason.unwrap_or_default());
        format!("{name}: {reason}: {}", event.note.unwrap_or_default())
    };
    Ok(events.filter(is_recent).map(describe).collect())
}
