//! `5spot preview`: read, check, foresee, show. Each step takes what the one before has made; only the
//! first and the last touch the world.

mod args;
mod calendar;
mod checked;
mod clock_change;
mod clock_note;
mod data;
mod forecast;
mod known_fields;
mod range;
mod svg;
mod text;
mod wording;
mod wrap;

pub use args::Args;

use crate::args::Outcome;
use crate::manifest::{self, Finding, Object, Problem, Source};
use crate::surroundings::Surroundings;
use args::{Format, Request};
use checked::Checked;
use forecast::Forecast;
use range::Range;
use std::io::{self, Write};

/// Does all of it.
pub fn run(args: &Args, surroundings: &Surroundings) -> Outcome {
    let request = match args.resolve(surroundings) {
        Ok(request) => request,
        Err(message) => {
            complain(&format!("error: {message}"));
            return Outcome::Invalid;
        }
    };
    let (forecasts, problems) = foresee(&request.sources, request.range);
    if !problems.is_empty() {
        // Half an answer would be taken for the whole.
        return report(&problems);
    }
    if forecasts.is_empty() {
        complain("note: there is no ScheduledMachine to preview");
    }
    match render(&forecasts, &request).and_then(|text| Ok(show(&text)?)) {
        Ok(()) => Outcome::Fine,
        Err(error) => {
            complain(&format!("error: failed to write the preview: {error:#}"));
            Outcome::Failed
        }
    }
}

/// Looks at every object of every source, so that every mistake is told at once.
fn foresee(sources: &[Source], range: Range) -> (Vec<Forecast>, Vec<Problem>) {
    let (mut forecasts, mut problems) = (Vec::new(), Vec::new());
    for finding in sources.iter().flat_map(manifest::read) {
        match finding {
            Finding::Object(Object { place, value }) => match Checked::new(value) {
                Ok(checked) => forecasts.push(Forecast::new(&checked, range)),
                Err(faults) => {
                    problems.extend(faults.into_iter().map(|fault| Problem::BadField(place.clone(), fault)));
                }
            },
            Finding::Skipped(note) => complain(&format!("note: {note}")),
            Finding::Problem(problem) => problems.push(problem),
        }
    }
    (forecasts, problems)
}

fn render(forecasts: &[Forecast], request: &Request) -> anyhow::Result<String> {
    match request.format {
        Format::Text => Ok(text::render(forecasts, request.style)),
        Format::Json => data::json(forecasts),
        Format::Yaml => data::yaml(forecasts),
        Format::Svg => Ok(svg::render(forecasts)),
    }
}

fn report(problems: &[Problem]) -> Outcome {
    for problem in problems {
        complain(&format!("error: {problem}"));
    }
    if problems.iter().any(Problem::is_in_the_input) { Outcome::Invalid } else { Outcome::Failed }
}

/// A reader that has seen enough, such as `head`, is no failure.
fn show(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// A line for the person. It may hold what a file holds, so nothing in it may steer a terminal. If nobody
/// listens on stderr either, there is nobody left to tell.
fn complain(line: &str) {
    let mut harmless = String::with_capacity(line.len() + 1);
    for c in line.chars() {
        if c.is_control() {
            harmless.extend(c.escape_default());
        } else {
            harmless.push(c);
        }
    }
    let _ = writeln!(io::stderr(), "{harmless}");
}
