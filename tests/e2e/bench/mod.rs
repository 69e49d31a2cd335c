//! `cargo xtask bench-operator`: the cost of an idle fleet, the latency of a change, and the memory of an object, on
//! the real control plane and with the shipped controller.

mod diagnoses;
mod fleet;
mod kill_switches;
mod leaders;
mod measure;
mod neighbours;
mod reclaims;
mod report;
mod scale;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use five_spot_testenv::guard;
use five_spot_testenv::harness::PARENT_VARIABLE;
use five_spot_testenv::test_clusters::TestClusters;
use measure::Usage;
use report::Report;

pub(crate) use fleet::Fleet;
pub(crate) use measure::{Memory, is_renewal};
pub(crate) use report::Latency;

/// The argument that selects this benchmark instead of the tests.
const WORD: &str = "bench-operator";

/// The parameters of a measurement.
struct Wanted {
    controller: PathBuf,
    objects: usize,
    first: usize,
    quiet: Duration,
    changes: usize,
    json: bool,
}

/// Runs the benchmark if the command line selects it.
pub(crate) fn asked_for() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (word, rest) = arguments.split_first()?;
    let words = [
        WORD,
        diagnoses::WORD,
        kill_switches::WORD,
        leaders::WORD,
        neighbours::WORD,
        reclaims::WORD,
        scale::WORD,
    ];
    if !words.contains(&word.as_str()) {
        return None;
    }
    guard::enter();
    let parent = std::env::var(PARENT_VARIABLE).ok().and_then(|pid| pid.parse().ok());
    if let Some(Err(error)) = parent.map(guard::die_with_parent) {
        eprintln!("{error}");
        return Some(ExitCode::FAILURE);
    }
    let done = perform(word, rest);
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn perform(word: &str, arguments: &[String]) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    match word {
        diagnoses::WORD => runtime.block_on(diagnoses::run(arguments)),
        kill_switches::WORD => runtime.block_on(kill_switches::run(arguments)),
        leaders::WORD => runtime.block_on(leaders::run(arguments)),
        neighbours::WORD => runtime.block_on(neighbours::run(arguments)),
        reclaims::WORD => runtime.block_on(reclaims::run(arguments)),
        scale::WORD => runtime.block_on(scale::run(arguments)),
        _ => runtime.block_on(run(&parse(arguments)?)),
    }
}

/// `cargo xtask bench-operator` has checked them: controller, objects, first, quiet seconds, changes, json.
fn parse(arguments: &[String]) -> anyhow::Result<Wanted> {
    let [controller, objects, first, quiet, changes, json] = arguments else {
        anyhow::bail!("to be started by `cargo xtask bench-operator`");
    };
    Ok(Wanted {
        controller: controller.into(),
        objects: objects.parse()?,
        first: first.parse()?,
        quiet: Duration::from_secs(quiet.parse()?),
        changes: changes.parse()?,
        json: json.parse()?,
    })
}

async fn run(wanted: &Wanted) -> anyhow::Result<()> {
    let clusters = TestClusters::start().await?;
    let context = Arc::new(clusters.test_context("bench").await?);
    let mut fleet = Fleet::prepare(Arc::clone(&context), &wanted.controller).await?;
    let measured = measure(&mut fleet, wanted).await;
    let report = measured.with_context(|| format!("the end of the controller's log:\n{}", fleet.log()));
    clusters.stop().await?;
    let report = report?;
    if wanted.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

async fn measure(fleet: &mut Fleet, wanted: &Wanted) -> anyhow::Result<Report> {
    let say = |text: &str| eprintln!("{text}");
    fleet.start().await?;
    let empty = fleet.settled_memory().await?;
    say(&format!("with no objects: {empty}"));
    fleet.grow_to(wanted.first).await?;
    let small = fleet.restarted_memory().await?;
    say(&format!("with {} Active objects, after a restart: {small}", wanted.first));
    let growing = std::time::Instant::now();
    fleet.grow_to(wanted.objects).await?;
    let grown_in = growing.elapsed();
    let rushed = fleet.settled_memory().await?;
    say(&format!("with {} Active objects, after making them: {rushed}", wanted.objects));
    let large = fleet.restarted_memory().await?;
    say(&format!("with {} Active objects, after a restart: {large}", wanted.objects));

    let before = Latency::of(fleet.changes(wanted.changes).await?);
    say(&format!("quiet for {} s", wanted.quiet.as_secs()));
    fleet.until_silent().await?;
    let begun = fleet.usage().await?;
    tokio::time::sleep(wanted.quiet).await;
    let quiet = fleet.usage().await?.since(&begun);
    let after = Latency::of(fleet.changes(wanted.changes).await?);
    let memory_at_the_end = fleet.settled_memory().await?;
    fleet.stop().await?;
    let further = (wanted.objects - wanted.first).max(1) as u64;
    let Usage { reads, writes, watches, by_its_own_count } = quiet;
    Ok(Report {
        objects: wanted.objects,
        quiet_seconds: wanted.quiet.as_secs(),
        quiet_requests: reads + writes,
        quiet_requests_by_its_own_count: by_its_own_count,
        quiet_watches_opened: watches,
        change_to_write_before: before,
        change_to_write_after: after,
        memory_empty_bytes: empty.resident,
        memory_first_objects: wanted.first,
        memory_first_bytes: small.resident,
        memory_after_making_bytes: rushed.resident,
        memory_after_restart_bytes: large.resident,
        memory_at_the_end_bytes: memory_at_the_end.resident,
        bytes_per_object: large.anonymous.saturating_sub(small.anonymous) / further,
        bytes_per_object_after_making: rushed.anonymous.saturating_sub(small.anonymous) / further,
        resident_bytes_per_object: large.resident.saturating_sub(small.resident) / further,
        made_in_seconds: grown_in.as_secs(),
    })
}
