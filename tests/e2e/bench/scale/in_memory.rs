//! Growth: one controller with more and more objects, on the in-memory API server in this process. The controller is another
//! process.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use five_spot_api::crd;
use five_spot_apiserver::{ApiServer, ApiServerConfig, Clock, HttpServer, serve};
use five_spot_standins::{Contract, cluster_api_crds, provider_crds};
use five_spot_testenv::run_directory::{self, RunDirectory};
use serde::Serialize;

use super::objects::{self, Window};
use super::plot;
use super::report::{load, megabytes};
use crate::bench::measure::{Memory, cpu_ticks, own_count, own_writes, seconds_of, share_of_core};
use crate::startup::Program;

const NAMESPACE: &str = "lent";

/// The time between two looks at the metrics of the controller: they have a series for each object, so that more looks at many
/// objects would be a part of what is measured.
const fn look_every(objects: usize) -> Duration {
    Duration::from_secs(if objects < 10_000 { 1 } else { 5 })
}

/// The time that the first contact with objects, or a restart, takes at most.
fn settled_within(objects: usize) -> Duration {
    Duration::from_mins(2) + Duration::from_millis(15) * u32::try_from(objects).unwrap_or(u32::MAX)
}

/// The time for which a fleet is observed at rest.
const QUIET: Duration = Duration::from_secs(20);

/// The figures of one size.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Growth {
    pub(super) objects: usize,
    /// From the start to the end of the first contact.
    pub(super) contact_seconds: f64,
    pub(super) contact_cpu_seconds: f64,
    pub(super) contact_requests: u64,
    pub(super) contact_memory: u64,
    /// From the start of another controller to its readiness, and to the reconcile of the last object.
    pub(super) ready_seconds: f64,
    pub(super) restart_seconds: f64,
    pub(super) restart_cpu_seconds: f64,
    pub(super) restart_requests: u64,
    pub(super) restart_writes: u64,
    /// At rest after that.
    pub(super) memory: u64,
    pub(super) idle_requests: u64,
    pub(super) idle_core_percent: f64,
    pub(super) load: f64,
}

/// Measures every size. Prints its figures and writes the plot of all sizes so far as soon as it is measured.
pub(super) async fn run(controller: &Path, plot: &Path, sizes: &[usize], json: bool) -> anyhow::Result<()> {
    if !json {
        print_header();
    }
    let mut figures = Vec::new();
    for size in sizes {
        let figure = measure(controller, *size).await.with_context(|| format!("{size} objects"))?;
        if json {
            println!("{}", serde_json::to_string_pretty(&figure)?);
        } else {
            figure.print();
        }
        figures.push(figure);
        std::fs::write(plot, plot::svg(&figures))?;
    }
    Ok(())
}

fn print_header() {
    println!(
        "| objects | first contact | its requests an object | its CPU | its memory | restart: ready / all | its CPU | writes, with its Lease and permission reviews | memory at rest | requests with those of its Lease, CPU at rest | load |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
}

impl Growth {
    fn print(&self) {
        #[allow(clippy::cast_precision_loss)]
        let each = self.contact_requests as f64 / self.objects as f64;
        println!(
            "| {} | {:.1} s | {each:.2} | {:.1} s | {} | {:.1} / {:.1} s | {:.1} s | {} | {} | {}, {:.2} % | {:.1} |",
            self.objects,
            self.contact_seconds,
            self.contact_cpu_seconds,
            megabytes(self.contact_memory),
            self.ready_seconds,
            self.restart_seconds,
            self.restart_cpu_seconds,
            self.restart_writes,
            megabytes(self.memory),
            self.idle_requests,
            self.idle_core_percent,
            self.load,
        );
    }
}

async fn measure(controller: &Path, objects: usize) -> anyhow::Result<Growth> {
    let (_api, server) = populated(objects).await?;
    let name = format!("{}-{}", super::WORD, std::process::id());
    let owned = RunDirectory::create(&run_directory::base(), &name)?;
    let directory = owned.path();
    let begun = Instant::now();
    let program = start(controller, directory, &server).await?;
    let contact = until_settled(&program, objects).await?;
    let contact_seconds = contact.at.duration_since(begun).as_secs_f64();
    let contact_memory = Memory::peak_of(program.pid())?;
    program.stop().await?;

    let begun = Instant::now();
    let program = start(controller, directory, &server).await?;
    program.is_ready().await?;
    let ready_seconds = begun.elapsed().as_secs_f64();
    let restart = until_settled(&program, objects).await?;
    let restart_seconds = restart.at.duration_since(begun).as_secs_f64();
    let ticks = cpu_ticks(program.pid())?;
    tokio::time::sleep(QUIET).await;
    // Before the metrics are read again, which takes time and memory itself.
    let (memory, used) = (Memory::of(program.pid())?.resident, cpu_ticks(program.pid())? - ticks);
    let metrics = program.metrics().await?;
    let figure = Growth {
        objects,
        contact_seconds,
        contact_cpu_seconds: seconds_of(contact.ticks),
        contact_requests: contact.requests,
        contact_memory,
        ready_seconds,
        restart_seconds,
        restart_cpu_seconds: seconds_of(restart.ticks),
        restart_requests: restart.requests,
        restart_writes: own_writes(&metrics),
        memory,
        idle_requests: own_count(&metrics) - restart.requests,
        idle_core_percent: share_of_core(used, QUIET),
        load: load(),
    };
    program.stop().await?;
    std::fs::remove_dir_all(directory)?;
    Ok(figure)
}

/// An API server with objects whose windows are closed.
async fn populated(objects: usize) -> anyhow::Result<(ApiServer, HttpServer)> {
    let api = ApiServer::new(ApiServerConfig::new(Clock::system()));
    let server = serve(api.service(), ([127, 0, 0, 1], 0).into()).await?;
    let ours = serde_json::to_value(crd())?;
    for crd in cluster_api_crds(Contract::V1Beta2).into_iter().chain(provider_crds()).chain([ours]) {
        api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    }
    for object in objects::namespace_objects(NAMESPACE, &server.kubeconfig()) {
        let path = match object["kind"].as_str() {
            Some("Namespace") => "/api/v1/namespaces".to_owned(),
            Some("Secret") => format!("/api/v1/namespaces/{NAMESPACE}/secrets"),
            _ => format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/clusters"),
        };
        api.create(&path, &object);
    }
    let path = format!("/apis/5spot.finos.org/v1alpha1/namespaces/{NAMESPACE}/scheduledmachines");
    for number in 0..objects {
        api.create(&path, &objects::scheduled_machine(NAMESPACE, number, &Window::Closed));
    }
    Ok((api, server))
}

async fn start(controller: &Path, directory: &Path, server: &HttpServer) -> anyhow::Result<Program> {
    let flags = [format!("--watch-namespace={NAMESPACE}")];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Program::start_as(controller, directory, &server.kubeconfig(), "bench", &flags).await
}

/// The number of looks in a row that see no more requests, but one of the Lease, before the controller is at rest.
const SETTLED_LOOKS: u32 = 3;

struct Settled {
    /// The requests up to the last look.
    requests: u64,
    /// The first look at which all was done.
    at: Instant,
    /// The CPU time until then.
    ticks: u64,
}

/// Waits until every object was reconciled and there are no more requests.
async fn until_settled(program: &Program, objects: usize) -> anyhow::Result<Settled> {
    let deadline = Instant::now() + settled_within(objects);
    let mut settled = Settled { requests: 0, at: Instant::now(), ticks: 0 };
    let (mut was_complete, mut quiet_looks) = (false, 0);
    loop {
        tokio::time::sleep(look_every(objects)).await;
        let (at, ticks) = (Instant::now(), cpu_ticks(program.pid())?);
        let metrics = program.metrics().await?;
        let (requests, reconciled) = (own_count(&metrics), reconciled_objects(&metrics));
        // The Lease of the instance is renewed every ten seconds, whatever happens.
        if was_complete && requests <= settled.requests + 1 {
            quiet_looks += 1;
        } else {
            (settled.at, settled.ticks, quiet_looks) = (at, ticks, 0);
        }
        settled.requests = requests;
        was_complete = reconciled >= objects;
        if quiet_looks >= SETTLED_LOOKS {
            return Ok(settled);
        }
        ensure!(at < deadline, "{reconciled} of {objects} objects after {:?}", settled_within(objects));
    }
}

/// The number of objects that were reconciled at least once since the start: each is in exactly one phase then.
pub(super) fn reconciled_objects(metrics: &str) -> usize {
    let counts = metrics.lines().filter(|line| line.starts_with("fivespot_machines_by_phase{"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}
