//! `5spot sandbox`: furnish, play, tell. The play itself is the real controller on an embedded API with a clock of
//! its own; everything that is shown or judged is a function of what was recorded.

mod args;
mod fleet;
mod lines;
mod patience;
mod picture;
mod recorder;
mod rows;
#[cfg(test)]
mod sample;
mod screen;
mod serving;
mod span;
mod stage;
mod summary;
mod teller;
mod text;
mod trace;
mod verdict;
mod wants;

#[cfg(test)]
mod tests;

pub use args::Args;

use crate::args::Outcome;
use crate::manifest::Problem;
use crate::output::{complain, show};
use crate::style::Style;
use crate::surroundings::Surroundings;
use anyhow::Context as _;
use args::{Format, Request};
use fleet::{Fleet, Refusal};
use serving::Open;
use stage::Stage;
use std::pin::pin;
use std::time::Duration;
use summary::Run;
use teller::Teller;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// How long the controller may take to end, in its own time.
const FAREWELL: Duration = Duration::from_secs(30);

/// Does all of it.
pub fn run(args: &Args, surroundings: &Surroundings) -> Outcome {
    let request = match args.resolve(surroundings) {
        Ok(request) => request,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Outcome::Invalid;
        }
    };
    match perform(&request) {
        Ok(outcome) => outcome,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            Outcome::Failed
        }
    }
}

fn perform(request: &Request) -> anyhow::Result<Outcome> {
    let fleet = match who(request) {
        Ok(fleet) => fleet,
        Err(problems) => return Ok(report(&problems)),
    };
    // Paused time jumps to the next timer whenever nothing else can run: a week takes seconds.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.context("failed to start")?.block_on(play(request, fleet))
}

fn who(request: &Request) -> Result<Fleet, Vec<Problem>> {
    if request.sources.is_empty() {
        return Ok(fleet::demo(request.range.from));
    }
    let fleet = fleet::read(&request.sources)?;
    if !fleet.objects.iter().any(|one| one.value["kind"] == five_spot_api::names::KIND) {
        complain("note: there is no ScheduledMachine in the files; the sandbox starts empty");
    }
    Ok(fleet)
}

fn report(problems: &[Problem]) -> Outcome {
    for problem in problems {
        complain(&format!("error: {problem}"));
    }
    if problems.iter().any(Problem::is_in_the_input) { Outcome::Invalid } else { Outcome::Failed }
}

async fn play(request: &Request, fleet: Fleet) -> anyhow::Result<Outcome> {
    let stage = Stage::new(request.range.from, request.seed)?;
    if let Err(Refusal { place, message }) = stage.furnish(&fleet).await {
        let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
        complain(&format!("error: {place}{message}"));
        return Ok(Outcome::Invalid);
    }
    let open = match &request.serving {
        Some(serving) => Some(Open::new(&stage.api, serving).await?),
        None => None,
    };
    let stop = CancellationToken::new();
    let teller = Teller::new(request, &stage, open.as_ref());
    let mut play = pin!(stage.play(fleet, stop.clone()));
    let told = tokio::select! {
        biased;
        ended = &mut play => return Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("the controller has ended by itself"))),
        told = teller.tell() => told,
    };
    // What comes after is no part of the story.
    let end = stage.clock.now();
    let trace = stage.recorder.finish();
    stop.cancel();
    drop(tokio::time::timeout(FAREWELL, play).await);
    if !told? {
        // Nobody listens any more.
        return Ok(Outcome::Fine);
    }
    let violations = verdict::violations(&trace, end);
    let run = Run { trace: &trace, range: request.range, end, violations: &violations };
    show(&conclusion(&run, request)).context("failed to write the answer")?;
    Ok(if violations.is_empty() { Outcome::Fine } else { Outcome::Failed })
}

/// What is left to say at the end.
fn conclusion(run: &Run<'_>, request: &Request) -> String {
    // A terminal may have become another one meanwhile.
    let style = if request.is_live { Style::of(&Surroundings::observe()) } else { request.style };
    let whole = |lines: Vec<String>| lines.into_iter().map(|line| line + "\n").collect::<String>();
    match request.format {
        Format::Svg => picture::render(run),
        Format::Json => whole(vec![summary::json(run)]),
        Format::Text => {
            let mut lines = Vec::new();
            // Whoever has read line by line has seen it.
            if request.is_live || request.speed.is_none() {
                lines.extend(text::chart(&run.rows(), run.shown(), style));
            }
            lines.extend(summary::text(run, style));
            whole(lines)
        }
    }
}
