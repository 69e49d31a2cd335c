//! The figures, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The times of many objects, in seconds.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spread {
    pub(super) first: f64,
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) last: f64,
}

impl Spread {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        let at = |share: usize| {
            let place = (times.len() * share).div_ceil(100).saturating_sub(1);
            times.get(place).map_or(0.0, Duration::as_secs_f64)
        };
        Self { first: at(0), median: at(50), p99: at(99), last: at(100) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, median, p99, last } = self;
        write!(f, "{first:.3} / {median:.3} / {p99:.3} / {last:.3} s")
    }
}

/// Windows that opened at once.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpeningReport {
    pub(super) present: usize,
    pub(super) opening: usize,
    /// From the opening of the window to the request that creates the bootstrap object.
    pub(super) to_create: Spread,
    /// From the opening of the window to phase Active.
    pub(super) to_active: Spread,
    pub(super) requests: BTreeMap<String, f64>,
    pub(super) writes_afterwards: u64,
}

/// The first contact with new objects.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contact {
    pub(super) seconds: f64,
    /// For each object.
    pub(super) requests: f64,
    pub(super) memory: u64,
}

/// The controller beside a bare client that sends the same requests, per object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Comparison {
    pub(super) controller_ms: f64,
    pub(super) bare_ms: f64,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller_ms, bare_ms } = self;
        write!(f, "{:.2} ({controller_ms:.2} : {bare_ms:.2} ms an object)", controller_ms / bare_ms)
    }
}

/// A fleet at rest.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Idle {
    pub(super) seconds: u64,
    pub(super) requests: u64,
    pub(super) core_percent: f64,
    pub(super) memory: u64,
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, requests, core_percent, memory } = self;
        write!(
            f,
            "{requests} requests beside its Lease, {core_percent:.2} % of a core in {seconds} s, {}",
            megabytes(*memory)
        )
    }
}

/// A restart of the controller.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restart {
    pub(super) ready_seconds: f64,
    pub(super) all_seconds: f64,
    pub(super) requests: u64,
    pub(super) writes: u64,
    pub(super) memory: u64,
}

/// A whole fleet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FleetReport {
    pub(super) objects: usize,
    pub(super) contact: Contact,
    pub(super) contact_ratio: Comparison,
    pub(super) opening_seconds: f64,
    pub(super) opening_ratio: Comparison,
    pub(super) to_active: Spread,
    pub(super) requests: BTreeMap<String, f64>,
    pub(super) memory_before: u64,
    pub(super) memory_storm: u64,
    pub(super) idle: Idle,
    pub(super) restart: Restart,
    pub(super) writes_afterwards: u64,
}

/// Windows that opened and closed at once, while leaders were killed and the API server was restarted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StormsReport {
    pub(super) objects: usize,
    /// The number of machines with a Node that was drained.
    pub(super) nodes: usize,
    pub(super) lease_seconds: u64,
    /// From the opening minute to the last write of a status.
    pub(super) opening_seconds: f64,
    /// From the closing minute to the last write of a status.
    pub(super) closing_seconds: f64,
    /// From the SIGKILL of the leader to the first write of the next one.
    pub(super) opening_takeover_seconds: f64,
    pub(super) closing_takeover_seconds: f64,
    /// From the SIGKILL of the API server until it was ready again.
    pub(super) api_server_seconds: f64,
    /// The most memory of any replica.
    pub(super) peak_memory: u64,
    /// Creations and deletions of Machines that the API server answered.
    pub(super) machines_created: usize,
    pub(super) machines_deleted: usize,
    /// Creations and deletions that took place, but were interrupted before their answer was logged.
    pub(super) answers_lost: usize,
    pub(super) writes_afterwards: u64,
}

/// Owners who wanted their machines back, while nothing else happened and while windows opened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReclaimsReport {
    pub(super) objects: usize,
    pub(super) pods: usize,
    /// The number of reclaims in each half.
    pub(super) each: usize,
    /// From the request on the Node to the DELETE of the Machine, one after the other.
    pub(super) quiet: Spread,
    /// The same while windows open.
    pub(super) during: Spread,
    /// The windows that were open when the last owner returned.
    pub(super) open_at_last: usize,
    pub(super) writes_afterwards: u64,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The average number of processes that wanted to run, in the last minute before the start and before the end.
    pub(super) load: [f64; 2],
    pub(super) openings: Vec<OpeningReport>,
    pub(super) fleets: Vec<FleetReport>,
    pub(super) storms: Vec<StormsReport>,
    pub(super) reclaims: Vec<ReclaimsReport>,
}

/// The load of this machine in the last minute.
pub(super) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn total(requests: &BTreeMap<String, f64>) -> String {
    let kinds: Vec<String> = requests.iter().map(|(kind, share)| format!("{kind} {share}")).collect();
    format!("{:.2} ({})", requests.values().sum::<f64>(), kinds.join(", "))
}

/// A row: what, the figure, the target.
type Row = (String, String, &'static str);

impl OpeningReport {
    fn rows(&self) -> Vec<Row> {
        let what = format!("{} of {} windows open", self.opening, self.present);
        vec![
            (
                format!("{what}: to the first create, first / median / p99 / last"),
                self.to_create.to_string(),
                if self.opening < self.present { "p99 below 50 ms" } else { "" },
            ),
            (format!("{what}: to Active"), self.to_active.to_string(), "first below 0.5 s"),
            (format!("{what}: requests an object"), total(&self.requests), "10"),
            (format!("{what}: writes afterwards"), self.writes_afterwards.to_string(), "0"),
        ]
    }
}

impl FleetReport {
    fn rows(&self) -> Vec<Row> {
        let fleet = |what: &str| format!("{} objects: {what}", self.objects);
        vec![
            (
                fleet("first contact"),
                format!("{:.1} s, {:.2} requests an object", self.contact.seconds, self.contact.requests),
                "",
            ),
            (
                fleet("first contact, by the bare client's time"),
                self.contact_ratio.to_string(),
                "at most 1.25",
            ),
            (fleet("all windows open"), format!("{:.1} s", self.opening_seconds), ""),
            (
                fleet("all windows open, by the bare client's time"),
                self.opening_ratio.to_string(),
                "at most 1.25",
            ),
            (
                fleet("to Active, first / median / p99 / last"),
                self.to_active.to_string(),
                "first below 0.5 s",
            ),
            (fleet("requests an object"), total(&self.requests), "10"),
            (fleet("memory after the first contact"), megabytes(self.memory_before), "below 50 MB"),
            (fleet("memory, most while windows open"), megabytes(self.memory_storm), "below 80 MB"),
            (fleet("at rest"), self.idle.to_string(), "0 requests, 0.07 %, below 50 MB"),
            (
                fleet("restart, ready / every object reconciled"),
                format!("{:.1} / {:.1} s", self.restart.ready_seconds, self.restart.all_seconds),
                "below 10 / 60 s",
            ),
            (
                fleet("restart, requests beside its Lease / writes / memory"),
                format!(
                    "{} / {} / {}",
                    self.restart.requests,
                    self.restart.writes,
                    megabytes(self.restart.memory)
                ),
                "0 writes",
            ),
            (fleet("writes afterwards"), self.writes_afterwards.to_string(), "0"),
        ]
    }
}

impl StormsReport {
    fn rows(&self) -> Vec<Row> {
        let storms = |what: &str| format!("{} objects: {what}", self.objects);
        let seconds = |seconds: f64| format!("{seconds:.1} s");
        vec![
            (
                storms("all windows open, leader killed, API server restarted"),
                seconds(self.opening_seconds),
                "",
            ),
            (
                storms(&format!("all windows close, {} nodes drain, leader killed", self.nodes)),
                seconds(self.closing_seconds),
                "",
            ),
            (
                storms("SIGKILL of the leader to the first write of the next, opening / closing"),
                format!(
                    "{:.1} / {:.1} s with a Lease of {} s",
                    self.opening_takeover_seconds, self.closing_takeover_seconds, self.lease_seconds
                ),
                "",
            ),
            (
                storms("SIGKILL of the API server until it is ready again"),
                seconds(self.api_server_seconds),
                "",
            ),
            (storms("memory, most of a replica"), megabytes(self.peak_memory), ""),
            (
                storms("Machines created / deleted / interrupted before the answer was logged"),
                format!("{} / {} / {}", self.machines_created, self.machines_deleted, self.answers_lost),
                "one of each for every object",
            ),
            (storms("writes afterwards"), self.writes_afterwards.to_string(), "0"),
        ]
    }
}

impl ReclaimsReport {
    fn rows(&self) -> Vec<Row> {
        let Self { objects, pods, each, .. } = self;
        let reclaims = |what: &str| format!("{each} reclaims with {pods} pods each, {what}");
        vec![
            (
                reclaims("request to Machine DELETE, first / median / p99 / last"),
                self.quiet.to_string(),
                "p99 below 1 s",
            ),
            (reclaims(&format!("while {objects} windows open")), self.during.to_string(), ""),
            (
                reclaims("p99 by that of quiet"),
                format!("{:.2}", self.during.p99 / self.quiet.p99),
                "at most 3",
            ),
            (
                reclaims("windows open at the last request"),
                format!("{} of {objects}", self.open_at_last),
                "not all",
            ),
            (reclaims("writes afterwards"), self.writes_afterwards.to_string(), "0"),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | measured | target |\n|---|---|---|")?;
        let openings = self.openings.iter().flat_map(OpeningReport::rows);
        let fleets = self.fleets.iter().flat_map(FleetReport::rows);
        let storms = self.storms.iter().flat_map(StormsReport::rows);
        let reclaims = self.reclaims.iter().flat_map(ReclaimsReport::rows);
        for (what, figure, target) in openings.chain(fleets).chain(storms).chain(reclaims) {
            writeln!(f, "| {what} | {figure} | {target} |")?;
        }
        let [before, after] = self.load;
        writeln!(f, "\nLoad of the machine: {before:.1} before, {after:.1} after.")
    }
}
