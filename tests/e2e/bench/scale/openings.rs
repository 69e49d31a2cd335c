//! Windows that open at once.

use std::time::Duration;

use anyhow::ensure;
use jiff::Timestamp;

use super::in_memory::reconciled_objects;
use super::objects::Window;
use super::progress::{Progress, Steps};
use super::recording::Recording;
use super::report::{Comparison, Contact, FleetReport, Idle, OpeningReport, Restart, Spread};
use super::site::{Site, minute_after};
use crate::bench::measure::{Memory, cpu_ticks, share_of_core};
use crate::startup::Program;

/// The namespace that the controller works in.
pub(super) const LENT: &str = "lent";

/// The namespace of the objects for which a bare client sends the same requests.
const REPLAYED: &str = "replayed";

/// The objects that the controller works on at a time, by default: the bare client does the same.
pub(super) const CONCURRENCY: usize = 16;

/// The time without requests after which the controller is at rest.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// The time after a storm in which nothing may be written.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(10);

/// The time after the opening in which every window has to be open: for a machine that has much else to do.
pub(super) const OPEN_WITHIN: Duration = Duration::from_mins(20);

/// The pause between two looks at the metrics of a controller that has been started again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time that the creation of and the first contact with objects take, at most.
pub(super) fn preparation(objects: usize) -> Duration {
    Duration::from_secs(20) + Duration::from_millis(25) * u32::try_from(objects).unwrap_or(u32::MAX)
}

/// Some of many objects open.
pub(super) struct Opening {
    pub(super) present: usize,
    pub(super) count: usize,
    /// The number of times that so many objects open.
    pub(super) rounds: usize,
}

impl Opening {
    pub(super) async fn measure(&self, site: &Site) -> anyhow::Result<OpeningReport> {
        site.namespace(LENT).await?;
        let lent = self.count * self.rounds;
        let first = minute_after(preparation(self.present))?;
        site.create(LENT, lent..self.present.max(lent), &Window::Closed).await?;
        let mut openings = Vec::new();
        for round in 0..self.rounds {
            let opens = first + Duration::from_mins(1) * u32::try_from(round)?;
            let numbers = round * self.count..(round + 1) * self.count;
            site.create(LENT, numbers.clone(), &Window::OpensAt(opens)).await?;
            openings.push((opens, numbers));
        }
        let mut contact = Progress::follow(site.audit_log())?;
        let (program, _) = site.controller(LENT).await?;
        contact.until(program.pid(), self.present.max(lent), first, is_contacted).await?;
        contact.until_silent(Duration::from_secs(1)).await?;
        let mut progress = Progress::follow(site.audit_log())?;
        ensure!(Timestamp::now() < first, "the windows opened before all objects were known");
        let last = openings.last().map_or(first, |(opens, _)| *opens);
        progress.until(program.pid(), lent, last + OPEN_WITHIN, |steps| steps.active.is_some()).await?;
        let (mut to_create, mut to_active) = (Vec::new(), Vec::new());
        for (opens, numbers) in openings {
            let since = |time: Option<Timestamp>| time.map(|time| seconds_since(opens, time));
            let steps: Vec<&Steps> = numbers.filter_map(|number| progress.steps.get(&number)).collect();
            to_create.extend(steps.iter().filter_map(|steps| since(steps.first_create)));
            to_active.extend(steps.iter().filter_map(|steps| since(steps.active)));
        }
        progress.until_silent(SILENCE).await?;
        site.check(LENT, lent).await?;
        let writes_afterwards = writes_during(site, AFTERWARDS).await?;
        program.stop().await?;
        Ok(OpeningReport {
            present: self.present.max(lent),
            opening: self.count,
            to_create: Spread::of(to_create),
            to_active: Spread::of(to_active),
            requests: by_object(&progress, lent),
            writes_afterwards,
        })
    }
}

/// A whole fleet: first contact, opening, rest and restart.
pub(super) struct Fleet {
    pub(super) objects: usize,
    /// The number of objects for which a bare client sends the same requests.
    pub(super) replayed: usize,
    /// The time for which the fleet is observed at rest.
    pub(super) quiet: Duration,
}

impl Fleet {
    pub(super) async fn measure(&self, site: &Site) -> anyhow::Result<FleetReport> {
        let say = |text: String| eprintln!("{text}");
        let recording = Recording::make(site).await?;
        say(format!("first contact: {:#?}", recording.contact.describe()));
        say(format!("opening: {:#?}", recording.opening.describe()));
        let bare = site.identity().client("5spot-replay").await?;
        site.namespace(LENT).await?;
        site.namespace(REPLAYED).await?;
        site.create(REPLAYED, 0..self.replayed, &Window::Closed).await?;
        // The bare client sends the requests of the first contact before the windows open.
        let opens = minute_after(preparation(self.objects + self.replayed))?;
        site.create(LENT, 0..self.objects, &Window::OpensAt(opens)).await?;
        say(format!("{} objects are there; their windows open at {opens}", self.objects));

        let (mut program, contact) = self.contact(site, opens).await?;
        say(format!("first contact: {:.1} s, {} requests", contact.seconds, contact.requests));
        let replayed = recording.contact.replay(&bare, REPLAYED, 0..self.replayed, CONCURRENCY).await?;
        let contact_ratio = self.compare(contact.seconds, replayed);
        say(format!("the bare client: {contact_ratio}"));
        let idle_before = Memory::of(program.pid())?;
        ensure!(Timestamp::now() < opens, "the windows opened before all objects were known");

        let mut storm = Progress::follow(site.audit_log())?;
        let deadline = opens + OPEN_WITHIN;
        storm.until(program.pid(), self.objects, deadline, |steps| steps.active.is_some()).await?;
        let last = storm.steps.values().filter_map(|steps| steps.active).max();
        let seconds = last.map_or(0.0, |last| seconds_since(opens, last).as_secs_f64());
        let active = storm.steps.values().filter_map(|steps| steps.active);
        let to_active: Vec<Duration> = active.map(|time| seconds_since(opens, time)).collect();
        say(format!("opening: {seconds:.1} s, peak {}", storm.peak));
        storm.until_silent(SILENCE).await?;
        site.check(LENT, self.objects).await?;

        let idle = self.rest(site, &program).await?;
        say(format!("at rest: {idle}"));
        program.stop().await?;
        let restart;
        (program, restart) = self.restart(site).await?;
        say(format!("restart: {restart:?}"));
        let writes_afterwards = writes_during(site, AFTERWARDS).await?;
        program.stop().await?;
        // At the end: the claims in these requests would be in the cache of the controller, and cost it time and memory.
        let replayed = recording.opening.replay(&bare, REPLAYED, 0..self.replayed, CONCURRENCY).await?;
        let opening_ratio = self.compare(seconds, replayed);
        say(format!("the bare client: {opening_ratio}"));
        Ok(FleetReport {
            objects: self.objects,
            contact,
            contact_ratio,
            opening_seconds: seconds,
            opening_ratio,
            to_active: Spread::of(to_active),
            requests: by_object(&storm, self.objects),
            memory_before: idle_before.resident,
            memory_storm: storm.peak.resident,
            idle,
            restart,
            writes_afterwards,
        })
    }

    async fn contact(&self, site: &Site, deadline: Timestamp) -> anyhow::Result<(Program, Contact)> {
        let mut progress = Progress::follow(site.audit_log())?;
        let (program, _) = site.controller(LENT).await?;
        progress.until(program.pid(), self.objects, deadline, is_contacted).await?;
        let contacted = progress.steps.values().filter_map(|steps| steps.reported.max(steps.finalized));
        let last = contacted.max();
        let seconds =
            progress.first.zip(last).map_or(0.0, |(first, last)| seconds_since(first, last).as_secs_f64());
        progress.until_silent(Duration::from_secs(1)).await?;
        let requests = by_object(&progress, self.objects).values().sum();
        Ok((program, Contact { seconds, requests, memory: progress.peak.resident }))
    }

    /// The time of the controller for all objects beside that of the bare client for some, per object.
    fn compare(&self, seconds: f64, replayed: Duration) -> Comparison {
        #[allow(clippy::cast_precision_loss)]
        let per_object = |seconds: f64, objects: usize| seconds / objects.max(1) as f64 * 1000.0;
        Comparison {
            controller_ms: per_object(seconds, self.objects),
            bare_ms: per_object(replayed.as_secs_f64(), self.replayed),
        }
    }

    async fn restart(&self, site: &Site) -> anyhow::Result<(Program, Restart)> {
        let mut progress = Progress::follow(site.audit_log())?;
        let (program, ready) = site.controller(LENT).await?;
        let looked_at = until_looked_at(&program, self.objects).await?;
        progress.until_silent(SILENCE).await?;
        let restart = Restart {
            ready_seconds: ready.as_secs_f64(),
            all_seconds: ready.as_secs_f64() + looked_at.as_secs_f64(),
            requests: progress.beside_leases(),
            writes: progress.writes,
            memory: Memory::of(program.pid())?.resident,
        };
        Ok((program, restart))
    }

    async fn rest(&self, site: &Site, program: &Program) -> anyhow::Result<Idle> {
        let mut progress = Progress::follow(site.audit_log())?;
        progress.until_silent(SILENCE).await?;
        let mut progress = Progress::follow(site.audit_log())?;
        let ticks = cpu_ticks(program.pid())?;
        tokio::time::sleep(self.quiet).await;
        progress.read()?;
        Ok(Idle {
            seconds: self.quiet.as_secs(),
            requests: progress.beside_leases(),
            core_percent: share_of_core(cpu_ticks(program.pid())? - ticks, self.quiet),
            memory: Memory::of(program.pid())?.resident,
        })
    }
}

pub(super) fn is_contacted(steps: &Steps) -> bool {
    steps.reported.is_some() && steps.finalized.is_some()
}

pub(super) fn seconds_since(start: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(start)).unwrap_or_default()
}

/// Requests for each object, by verb and resource; those that are rarer than one for ten objects are left out.
fn by_object(progress: &Progress, objects: usize) -> std::collections::BTreeMap<String, f64> {
    #[allow(clippy::cast_precision_loss)]
    let share = |count: u64| (count as f64 / objects.max(1) as f64 * 100.0).round() / 100.0;
    let shares = progress.requests.iter().map(|(kind, count)| (kind.clone(), share(*count)));
    shares.filter(|(_, share)| *share >= 0.1).collect()
}

pub(super) async fn writes_during(site: &Site, time: Duration) -> anyhow::Result<u64> {
    let mut progress = Progress::follow(site.audit_log())?;
    tokio::time::sleep(time).await;
    progress.read()?;
    if progress.writes > 0 {
        eprintln!("requests although nothing has changed: {:?}", progress.requests);
    }
    Ok(progress.writes)
}

/// Waits until the controller has reconciled every object once, and returns how long that took.
async fn until_looked_at(program: &Program, objects: usize) -> anyhow::Result<Duration> {
    let begun = std::time::Instant::now();
    loop {
        let reconciled = reconciled_objects(&program.metrics().await?);
        if reconciled >= objects {
            return Ok(begun.elapsed());
        }
        ensure!(begun.elapsed() < Duration::from_mins(5), "only {reconciled} objects were looked at");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
