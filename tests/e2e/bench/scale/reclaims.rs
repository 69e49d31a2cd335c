//! Owners who want their machines back, while nothing else happens and while the windows of a whole fleet open.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use five_spot_api::reclaim::{REASON, REQUESTED, REQUESTED_AT, REQUESTED_TRUE};
use five_spot_api::{Phase, ScheduledMachine, names};
use five_spot_testenv::audit::{AuditLog, AuditQuery};
use five_spot_testenv::cluster::CONTROLLER_AGENT;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::nodes::{self, Nodes};
use super::objects::{self, Window};
use super::openings::{
    AFTERWARDS, LENT, OPEN_WITHIN, SILENCE, is_contacted, preparation, seconds_since, writes_during,
};
use super::progress::Progress;
use super::report::{ReclaimsReport, Spread};
use super::site::{Site, minute_after};

/// Pods on each Node, as in `bench-agent`.
const PODS: usize = 30;

/// The time between two owners who return while windows open.
const RETURN_EVERY: Duration = Duration::from_millis(200);

/// The time from the opening to the first of them: then the storm is at full strength.
const FIRST_RETURN: Duration = Duration::from_secs(1);

/// The time without requests before the next owner returns while nothing else happens.
const BETWEEN: Duration = Duration::from_millis(500);

/// The time that a reclaim while nothing else happens takes at most, on average, with the silence after it.
const QUIET_RECLAIM: Duration = Duration::from_millis(2500);

/// The time that the creation of a Node with its pods takes at most.
const JOIN: Duration = Duration::from_millis(400);

/// The time in which every reclaim has to be over after the storm.
const DONE_WITHIN: Duration = Duration::from_mins(3);

/// The pause between two reads of all objects.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// The measurement.
pub(super) struct Reclaims {
    /// The number of objects whose windows open during the second half of the reclaims.
    pub(super) objects: usize,
    /// The number of reclaims.
    pub(super) count: usize,
}

impl Reclaims {
    pub(super) async fn measure(&self, site: &Site) -> anyhow::Result<ReclaimsReport> {
        ensure!(self.count > 1, "one reclaim is measured in each half");
        site.namespace(LENT).await?;
        let opens = minute_after(self.preparation())?;
        let (lent, others) = (0..self.count, self.count..self.count + self.objects);
        site.create(LENT, lent.clone(), &Window::OpensAt(Timestamp::now() - Duration::from_mins(5))).await?;
        site.create(LENT, others.clone(), &Window::OpensAt(opens)).await?;
        eprintln!("{} objects are there; the windows of {} open at {opens}", others.end, others.len());

        let mut progress = Progress::follow(site.audit_log())?;
        let (program, _) = site.controller(LENT).await?;
        progress.until(program.pid(), lent.len(), opens, |steps| steps.active.is_some()).await?;
        progress.until(program.pid(), others.end, opens, is_contacted).await?;
        let nodes = Nodes { site, namespace: LENT, numbers: lent.clone().collect(), pods: PODS };
        nodes.join().await?;
        nodes.until_known(opens).await?;
        progress.until_silent(BETWEEN).await?;
        eprintln!("{} machines have a Node with {PODS} pods each", lent.len());

        let half = self.count / 2;
        let place = site.audit_log().end()?;
        for number in 0..half {
            request(site, number).await?;
            progress.until_deleted(number, opens).await?;
            progress.until_silent(BETWEEN).await?;
        }
        let quiet = Spread::of(times(&site.audit_log(), place, 0..half)?);
        eprintln!("while nothing else happens: {quiet}");
        ensure!(Timestamp::now() < opens, "the windows opened before all quiet reclaims were done");

        let place = site.audit_log().end()?;
        let mut storm = Progress::follow(site.audit_log())?;
        tokio::time::sleep(seconds_since(Timestamp::now(), opens) + FIRST_RETURN).await;
        let mut ticks = interval(RETURN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in half..self.count {
            ticks.tick().await;
            request(site, number).await?;
        }
        storm.read()?;
        let open_at_last = storm.steps.values().filter(|steps| steps.active.is_some()).count();
        eprintln!("{open_at_last} of {} windows were open when the last owner returned", others.len());
        storm.until(program.pid(), others.len(), opens + OPEN_WITHIN, |steps| steps.active.is_some()).await?;
        storm.until_silent(SILENCE).await?;
        let during = Spread::of(times(&site.audit_log(), place, half..self.count)?);
        eprintln!("during the storm: {during}");

        self.until_done(site).await?;
        nodes.are_empty().await?;
        storm.until_silent(SILENCE).await?;
        let writes_afterwards = writes_during(site, AFTERWARDS).await?;
        program.stop().await?;
        Ok(ReclaimsReport {
            objects: self.objects,
            pods: PODS,
            each: half,
            quiet,
            during,
            open_at_last,
            writes_afterwards,
        })
    }

    /// The time until the windows open, in which everything else has to be done.
    fn preparation(&self) -> Duration {
        let each = |time: Duration, count: usize| time * u32::try_from(count).unwrap_or(u32::MAX);
        preparation(self.objects + self.count) + each(JOIN, self.count) + each(QUIET_RECLAIM, self.count / 2)
    }

    /// Waits until each machine that was reclaimed is disabled and each other one is lent.
    async fn until_done(&self, site: &Site) -> anyhow::Result<()> {
        let deadline = Timestamp::now() + DONE_WITHIN;
        let expected = |object: &ScheduledMachine| {
            let number = object.metadata.name.as_deref().and_then(objects::number);
            if number.is_some_and(|number| number < self.count) { Phase::Disabled } else { Phase::Active }
        };
        loop {
            let objects = site.objects(LENT).await?;
            ensure!(objects.len() == self.count + self.objects, "there are {} objects", objects.len());
            let phase = |object: &ScheduledMachine| object.status.as_ref().and_then(|status| status.phase);
            let wrong = objects.iter().find(|object| phase(object) != Some(expected(object)));
            let Some(wrong) = wrong else { return Ok(()) };
            let name = wrong.metadata.name.as_deref().unwrap_or_default();
            ensure!(Timestamp::now() < deadline, "{name} is {:?}, not {}", phase(wrong), expected(wrong));
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}

/// Asks for a machine as its agent does.
async fn request(site: &Site, number: usize) -> anyhow::Result<()> {
    let annotations = json!({
        REQUESTED: REQUESTED_TRUE,
        REASON: "process java started",
        REQUESTED_AT: Timestamp::now(),
    });
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    Api::<Node>::all(site.admin()).patch(&nodes::name(number), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The times from the arrival of the requests to that of the DELETE of each Machine, from the audit log.
fn times(log: &AuditLog, place: u64, numbers: Range<usize>) -> anyhow::Result<Vec<Duration>> {
    let (records, _) = log.read_from(place, &AuditQuery::all().verbs(&["patch", "delete"]))?;
    let (mut requested, mut deleted) = (BTreeMap::new(), BTreeMap::new());
    for record in &records {
        let is_ours = record.user_agent.starts_with(CONTROLLER_AGENT);
        let name = record.object.name.as_str();
        match (record.verb.as_str(), record.object.resource.as_str()) {
            ("patch", "nodes") if !is_ours => {
                requested.entry(name).or_insert(record.received);
            }
            ("delete", "machines") if is_ours && record.code == Some(200) => {
                deleted.entry(name).or_insert(record.received);
            }
            (_, _) => {}
        }
    }
    let time = |number: usize| {
        let name = objects::name(number);
        let requested = requested.get(nodes::name(number).as_str());
        let requested = requested.with_context(|| format!("no request for {name}"))?;
        let deleted = deleted.get(names::machine(&name).as_str());
        let deleted = deleted.with_context(|| format!("the Machine of {name} was not deleted"))?;
        Ok(seconds_since(*requested, *deleted))
    };
    numbers.map(time).collect()
}
