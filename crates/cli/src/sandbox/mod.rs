//! `5spot sandbox`: creates a fleet, runs it and reports. The run uses the real controller, an in-memory API
//! server and a simulated clock. All output and all checks are functions of the recorded trace.

mod args;
pub(crate) mod environment;
mod expectation;
pub(crate) mod fleet;
mod lines;
mod long_watches;
mod picture;
mod progress;
mod reclaims;
mod recorder;
mod rows;
mod samples;
mod screen;
mod serving;
mod span;
mod summary;
mod text;
mod trace;
#[cfg(test)]
mod trace_fixture;
mod verdict;

#[cfg(test)]
mod tests;

pub use args::Args;

use crate::args::Outcome;
use crate::environment::ProcessEnvironment;
use crate::manifest::Problem;
use crate::output::{complain, show};
use crate::style::Style;
use anyhow::Context as _;
use args::{Format, Request};
use environment::SandboxEnvironment;
use fleet::{RefusedObject, SandboxFleet};
use progress::ProgressReporter;
use samples::Samples;
use serving::KubectlAccess;
use std::pin::pin;
use std::time::Duration;
use summary::Run;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// The virtual time that the controller gets to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the command and returns its exit status.
pub fn run(args: &Args, process_environment: &ProcessEnvironment) -> Outcome {
    let request = match args.resolve(process_environment) {
        Ok(request) => request,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Outcome::Invalid;
        }
    };
    match prepare_and_run(&request) {
        Ok(outcome) => outcome,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

fn prepare_and_run(request: &Request) -> anyhow::Result<Outcome> {
    let fleet = match read_fleet(request) {
        Ok(fleet) => fleet,
        Err(problems) => return Ok(report(&problems)),
    };
    // Paused time jumps to the next timer whenever no task can run, so a week takes seconds.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.context("failed to start")?.block_on(run_fleet(request, fleet))
}

fn read_fleet(request: &Request) -> Result<SandboxFleet, Vec<Problem>> {
    if request.sources.is_empty() {
        return Ok(fleet::demo(request.range.from));
    }
    let fleet = fleet::read(&request.sources)?;
    if !fleet.objects.iter().any(|one| one.value["kind"] == five_spot_api::names::KIND) {
        complain("note: the files contain no ScheduledMachine; the sandbox starts empty");
    }
    Ok(fleet)
}

fn report(problems: &[Problem]) -> Outcome {
    for problem in problems {
        complain(&format!("error: {problem}"));
    }
    if problems.iter().any(Problem::is_in_the_input) { Outcome::Invalid } else { Outcome::Failed }
}

async fn run_fleet(request: &Request, fleet: SandboxFleet) -> anyhow::Result<Outcome> {
    let environment = SandboxEnvironment::new(request.range.from, request.seed)?;
    if let Err(RefusedObject { location, message }) = environment.create_fleet(&fleet).await {
        let location = location.map(|location| format!("{location}: ")).unwrap_or_default();
        complain(&format!("error: {location}{message}"));
        return Ok(Outcome::Invalid);
    }
    let access = match &request.serving {
        Some(serving) => Some(KubectlAccess::new(&environment.api, serving).await?),
        None => None,
    };
    let stop = CancellationToken::new();
    let sampling = match &request.metrics {
        Some(path) => {
            let samples =
                Samples::create(path).with_context(|| format!("failed to create {}", path.display()))?;
            let recording =
                samples.record(environment.metrics.clone(), environment.clock.clone(), stop.clone());
            Some(tokio::spawn(recording))
        }
        None => None,
    };
    let progress = ProgressReporter::new(request, &environment, access.as_ref());
    let mut run = pin!(environment.run(fleet, stop.clone()));
    let reported = tokio::select! {
        biased;
        ended = &mut run => return Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("the controller ended unexpectedly"))),
        reported = progress.report() => reported,
    };
    // The shutdown is not part of the run.
    let end = environment.clock.now();
    let trace = environment.recorder.finish();
    stop.cancel();
    drop(tokio::time::timeout(SHUTDOWN_TIMEOUT, run).await);
    if let Some(sampling) = sampling {
        sampling
            .await
            .context("the task that records metrics panicked")?
            .context("failed to write the metrics")?;
    }
    if !reported? {
        // Standard output is closed.
        return Ok(Outcome::Fine);
    }
    let violations = verdict::violations(&trace, end);
    let run = Run { trace: &trace, range: request.range, end, violations: &violations };
    show(&conclusion(&run, request)).context("failed to write the output")?;
    Ok(if violations.is_empty() { Outcome::Fine } else { Outcome::Failed })
}

/// The text at the end of a run.
fn conclusion(run: &Run<'_>, request: &Request) -> String {
    // The terminal may have been resized.
    let style = if request.is_live { Style::of(&ProcessEnvironment::observe()) } else { request.style };
    let whole = |lines: Vec<String>| lines.into_iter().map(|line| line + "\n").collect::<String>();
    match request.format {
        Format::Svg => picture::render(run),
        Format::Json => whole(vec![summary::json(run)]),
        Format::Text => {
            let mut lines = Vec::new();
            // Otherwise the events have been printed line by line.
            if request.is_live || request.speed.is_none() {
                lines.extend(text::chart(&run.rows(), run.shown(), style));
            }
            lines.extend(summary::text(run, style));
            whole(lines)
        }
    }
}
